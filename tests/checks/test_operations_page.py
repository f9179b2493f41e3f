"""The texts of docs/operations.md that are meant to be copied: nginx and
systemd parse them differently."""

import re

from webapp.platform.folders import ROOT

PAGE = (ROOT / "docs" / "operations.md").read_text()


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_nginx_configuration_works_with_the_versions_of_distributions() -> None:
    """`http2 on` is of 1.25.1; Debian 12 has 1.22."""
    assert "http2 on" not in block("nginx")
    assert all(f"proxy_set_header {name} " in block("nginx") for name in ("Host", "X-Forwarded-Proto", "X-Forwarded-For", "Upgrade", "Connection"))


def test_the_environment_file_reads_the_same_in_a_shell_and_in_systemd() -> None:
    """systemd takes a comment behind a value for a part of it."""
    lines = variables()
    assert all(line.startswith("# ") or re.fullmatch(r"[A-Z_]+=[^ #]+", line) for line in lines), lines


def variables() -> list[str]:
    """The lines of /etc/vedette.env."""
    (text,) = (text for text in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) if text.startswith("DJANGO_SETTINGS_MODULE="))
    return str(text).splitlines()


def test_services_without_write_access_find_the_kernels_that_set_up_compiled() -> None:
    (place,) = (line for line in variables() if line.startswith("NUMBA_CACHE_DIR="))
    set_ups = re.findall(r"(\S+) make setup'", PAGE)
    assert "ProtectSystem=strict" in PAGE and set_ups == [place, place]


def test_the_page_runs_commands_of_root_as_the_owner_of_the_files() -> None:
    """git refuses to work as root in another user's folder, and services could
    not change files of root."""
    assert "setpriv --reuid=vedette" in PAGE and not re.search(
        r"^(\.venv|manage|python)", "\n".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)), re.M
    )
    assert all("su - vedette -c" in line for line in PAGE.splitlines() if "git " in line and not line.startswith(("|", "As ")))


def test_the_percent_sign_is_explained_to_users_who_copy_a_command_into_a_unit() -> None:
    assert "deliveries@%%h" in PAGE
