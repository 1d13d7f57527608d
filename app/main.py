"""The dashboard: `streamlit run app/main.py`, or `rankscope dash`, which collects too. Navigation only."""

from pathlib import Path

import streamlit as st

from rankscope.app import shell
from rankscope.app.state import PAGES

st.set_page_config(
    page_title="Rankscope", page_icon=str(Path(__file__).parent / "static" / "icon.png"), layout="wide"
)

page = st.navigation(
    [
        st.Page(PAGES[""], title="Runs · Rankscope", default=True),
        st.Page(PAGES["run"], title="Run · Rankscope", url_path="run"),
        st.Page(PAGES["time"], title="Time · Rankscope", url_path="time"),
        st.Page(PAGES["what-if"], title="What if · Rankscope", url_path="what-if"),
        st.Page(PAGES["sql"], title="SQL · Rankscope", url_path="sql"),
    ],
    position="hidden",
)
shell.style()
shell.navigation()
page.run()
