"""docs/ as a site: `./bootstrap site`. Sphinx reads the Markdown as it stands; its search works from file://."""
import os, re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
project, author, copyright = "Rille", "Rille's authors", "Rille's authors"
release = version = re.search(r"project\(\w+ VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "README"
exclude_patterns = []
myst_heading_anchors = 4
myst_enable_extensions = ["html_image"]
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
html_theme = "sphinx_rtd_theme"
html_title = f"Rille {release}"
html_show_sourcelink = False
html_copy_source = False
REPOSITORY = os.environ.get("RILLE_REPOSITORY", "")  # where files outside docs/ can be read; "": their names only

SECTIONS = [
    ("Start", ["tutorial", "manual/quickstart", "building", "manual/bundle"]),
    ("Manual", ["manual/*"]),
    ("Providers", ["manual/providers/*"]),
    ("Coming from", ["manual/coming-from/*"]),
    ("Reference", ["reference/README", "reference/*"]),
    ("Inside", ["testing", "measurements/README", "design/README", "design/*"]),
]


def contents():
    """Hidden tables of contents for the side of each page; a page stands in the first section that names it."""
    seen, out = set(), ""
    for title, patterns in SECTIONS:
        pages = []
        for pattern in patterns:
            for file in sorted((ROOT / "docs").glob(pattern + ".md")):
                page = str(file.relative_to(ROOT / "docs"))[:-3]
                if page not in seen:
                    seen.add(page)
                    pages.append(page)
        out += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n:maxdepth: 1\n\n" + "\n".join(pages) + "\n```\n"
    return out


OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+([A-Z][A-Z]+\.md(?:#[^)]*)?|"
                     r"(?:workflows|stdlib|bindings|tests|runtime|kernels)/[^)]+)\)")


def outside(match):
    """A link to a file that is not in docs/."""
    text, target = match.groups()
    name = target.split("#")[0]
    return f"[{text}]({REPOSITORY}/{target})" if REPOSITORY else f"{text} (`{name}`)"


def read(app, page, source):
    text = OUTSIDE.sub(outside, source[0])
    source[0] = text + (contents() if page == root_doc else "")


def setup(app):
    app.connect("source-read", read)
