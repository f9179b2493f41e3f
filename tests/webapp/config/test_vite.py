"""The elements that load a page's scripts and styles."""

import json
import re
from pathlib import Path
from typing import Any

from webapp.config.templatetags.vite import vite


def test_a_page_preloads_all_imports_of_its_script(settings: Any, tmp_path: Path) -> None:
    settings.VITE_MANIFEST = tmp_path / "manifest.json"
    chunks = {
        "src/pages/desk.ts": {"file": "desk.js", "imports": ["_table.js", "_texts.js"], "dynamicImports": ["_map.js"], "css": ["desk.css"]},
        "_table.js": {"file": "table.js", "imports": ["_texts.js", "_shell.js"]},
        "_shell.js": {"file": "shell.js", "imports": ["_table.js"], "css": ["main.css"]},
        "_texts.js": {"file": "texts.js"},
        "_map.js": {"file": "map.js", "css": ["map.css"]},
    }
    settings.VITE_MANIFEST.write_text(json.dumps(chunks))
    written = [(kind, Path(name).name) for kind, name in re.findall(r'(?:rel|type)="(\w+)" (?:href|src)="([^"]+)"', vite("desk"))]
    assert written == [
        ("stylesheet", "main.css"),
        ("stylesheet", "desk.css"),
        ("modulepreload", "texts.js"),
        ("modulepreload", "shell.js"),
        ("modulepreload", "table.js"),
        ("module", "desk.js"),
    ]
