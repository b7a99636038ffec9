"""docs/ as a site: `./bootstrap site`. Sphinx reads the Markdown as it stands; its search works from file://."""
import os, re, sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from gallery import JOBS, ROOT  # noqa: E402

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
EXTRA = Path(os.environ.get("RILLE_SITE_EXTRA", ROOT / "build" / "extra"))  # gallery.py writes its reports there
html_extra_path = [str(EXTRA)] if EXTRA.is_dir() else []
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


def gallery():
    """Links to the reports that gallery.py has made, for the gallery's page; a line instead if it has not."""
    links = [f'<li><a href="../gallery/{name}.html">{name}.lua</a>: {what}</li>' for name, (_, what) in JOBS.items()
             if (EXTRA / "gallery" / f"{name}.html").is_file()]
    if not links:
        return "\nThis copy of the site was built without them: `./bootstrap build` comes before `./bootstrap site`.\n"
    return "\n<ul>\n" + "\n".join(links) + "\n</ul>\n"


def outside(match):
    """A link to a file that is not in docs/."""
    text, target = match.groups()
    name = target.split("#")[0]
    return f"[{text}]({REPOSITORY}/{target})" if REPOSITORY else f"{text} (`{name}`)"


def read(app, page, source):
    text = OUTSIDE.sub(outside, source[0])
    source[0] = text + (contents() if page == root_doc else gallery() if page == "manual/gallery" else "")


def setup(app):
    app.connect("source-read", read)
