"""Partitions are made and dropped by functions of the owner: the application's role needs no right to change the schema."""

from django.db import migrations

# `search_path` is fixed, so that nobody can put a table or function of their own before the ones
# that are meant.
CREATE = """
CREATE FUNCTION public.detections_partition_name(span integer) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF span IS NULL OR span NOT BETWEEN -1101 AND 7801 THEN
        RAISE EXCEPTION 'no partition has the number %', span;
    END IF;
    RETURN 'detections_' || CASE WHEN span < 0 THEN 'n' ELSE 'p' END || lpad(abs(span)::text, 5, '0');
END $$;

-- Made beside and attached: that blocks neither readers nor writers of the others. Intervals are updated when they end: room on the page
-- keeps most of those updates away from the indexes.
CREATE FUNCTION public.detections_partition_ensure(span integer) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name text := public.detections_partition_name(span);
    low text := CASE WHEN span < -1100 THEN 'MINVALUE' ELSE (span::bigint * 604800000)::text END;
    high text := CASE WHEN span > 7800 THEN 'MAXVALUE' ELSE ((span::bigint + 1) * 604800000)::text END;
BEGIN
    PERFORM pg_advisory_xact_lock(1986291060);
    IF to_regclass('public.' || name) IS NOT NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('CREATE TABLE public.%I (LIKE public.detections_detection INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', name);
    EXECUTE format('ALTER TABLE public.%I SET (fillfactor = 90)', name);
    EXECUTE format('ALTER TABLE public.detections_detection ATTACH PARTITION public.%I FOR VALUES FROM (%s) TO (%s)', name, low, high);
    RETURN true;
END $$;

CREATE FUNCTION public.detections_partition_drop(span integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(1986291060);
    EXECUTE format('DROP TABLE IF EXISTS public.%I', public.detections_partition_name(span));
END $$;

REVOKE EXECUTE ON FUNCTION public.detections_partition_ensure(integer), public.detections_partition_drop(integer) FROM PUBLIC;
"""
DROP = (
    "DROP FUNCTION public.detections_partition_ensure(integer), public.detections_partition_drop(integer), public.detections_partition_name(integer)"
)


class Migration(migrations.Migration):
    dependencies = [("detections", "0001_initial")]

    operations = [migrations.RunSQL(CREATE, DROP)]
