#!/bin/sh
# Runs once, when the data folder is new: the three roles of docs/settings.md, Database roles.
set -eu
psql --username postgres --set ON_ERROR_STOP=1 \
  --set owner="$POSTGRES_OWNER_PASSWORD" --set app="$POSTGRES_APP_PASSWORD" --set reader="$POSTGRES_READER_PASSWORD" <<'END'
CREATE ROLE vedette_owner LOGIN PASSWORD :'owner';
CREATE ROLE vedette_app LOGIN PASSWORD :'app';
CREATE ROLE vedette_read LOGIN PASSWORD :'reader';
GRANT vedette_app TO vedette_owner;
CREATE DATABASE vedette OWNER vedette_owner;
END
