"""HTML with links that change the page without loading the application anew.

Links stay links: they can be opened in another tab, copied and reached with the keyboard. A plain click is
handed to Streamlit instead, which swaps the page in a fraction of the time.
"""

from typing import Any

import streamlit as st

from rankscope.app.markup import Markup
from rankscope.app.state import follow

_JS = """
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".rs-root");
  if (root.dataset.html !== data) {
    root.dataset.html = data;
    root.innerHTML = data;
  }
  root.onclick = (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    if (String(window.getSelection())) return;
    const link = event.target.closest("a[href]");
    const row = event.target.closest("[data-href]");
    const to = link ? link.getAttribute("href") : row && row.dataset.href;
    if (!to || to.startsWith("#")) return;
    event.preventDefault();
    setTriggerValue("go", to);
  };
}
"""


@st.cache_resource(show_spinner=False)
def _component() -> Any:
    return st.components.v2.component(
        "rankscope_links", html='<div class="rs-root"></div>', js=_JS, isolate_styles=False
    )


def linked(body: Markup, *, key: str) -> None:
    """Show HTML whose links (from `state.href`) lead to pages of this application."""
    result = _component()(data=str(body), key=key, on_go_change=lambda: None)
    if result.go:
        follow(result.go)
