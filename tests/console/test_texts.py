"""The texts of the console: all languages have the same, the pages ask for what is there, and nothing else is there."""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE.parents[1] / "console" / "src"


def wrong(folder):
    done = subprocess.run(["node", str(HERE / "texts.mjs"), str(folder)], check=True, capture_output=True, text=True, timeout=60)
    return done.stdout.split("\n")[:-1] if done.stdout.strip() else []


def test_texts():
    assert wrong(SOURCES) == []


@pytest.mark.parametrize("file,old,new,said", [
    ("i18n/zh.js", r"\t'cancel':.*\n", "", "zh.js: cancel is missing"),
    ("i18n/zh.js", r"(\t'table.total':.*)\{total\}", r"\1", "zh.js: table.total has other {names} than in English"),
    ("i18n/en.js", r"(\t'cancel':)", r"\t'cancelled': 'x',\n\1", "en.js: no page uses cancelled"),
    ("lib/dialog.jsx", r"t\('cancel'\)", "t('cancle')", "lib/dialog.jsx: there is no text cancle"),
    ("i18n/en.js", r"(\t'cancel':)", r"\t'close': 'x',\n\1", "en.js: close is there twice"),
])
def test_is_noticed(tmp_path, file, old, new, said):
    src = tmp_path / "src"
    shutil.copytree(SOURCES, src)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    text = (src / file).read_text()
    changed = re.sub(old, new, text, count=1)
    assert changed != text
    (src / file).write_text(changed)
    assert said in wrong(src)
