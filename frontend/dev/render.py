"""Renders the pages' templates for the mock server: python render.py TEMPLATE CONTEXT.json PATH THEME."""

import json
import sys
from pathlib import Path

import django
from django.conf import settings
from django.template import Context, Engine, Library
from django.utils.safestring import mark_safe

ROOT = Path(__file__).resolve().parents[2]
register = Library()


@register.simple_tag
def static(path: str) -> str:
    return "/static/" + path


@register.simple_tag
def vite(name: str) -> str:
    manifest = json.loads((ROOT / "static/build/.vite/manifest.json").read_text())
    seen: set[str] = set()
    tags: list[str] = []

    def walk(key: str) -> None:
        if key in seen:
            return
        seen.add(key)
        for other in manifest[key].get("imports", []):
            walk(other)
        tags.extend(f'<link rel="stylesheet" href="/static/build/{file}">' for file in manifest[key].get("css", []))

    key = f"src/pages/{name}.ts"
    walk(key)
    tags.append(f'<script type="module" src="/static/build/{manifest[key]["file"]}"></script>')
    return mark_safe("".join(tags))


def main() -> None:
    template, context, path, theme = sys.argv[1:5]
    settings.configure(INSTALLED_APPS=[], USE_TZ=True)
    django.setup()
    engine = Engine(dirs=[str(ROOT / "webapp/templates")])
    engine.template_libraries = {"static": register, "vite": register}
    request = {"path": path, "COOKIES": {"theme": theme}, "get_full_path": path}
    values = json.loads(Path(context).read_text())
    sys.stdout.write(engine.get_template(template).render(Context({"request": request, "csrf_token": "mock", **values})))


main()
