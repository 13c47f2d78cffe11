"""The style of HTML reports: readable in light and dark, on a screen and on paper."""

from __future__ import annotations

from typing import Final

STYLE: Final = """\
:root { color-scheme: light dark; --line: #d5dae1; --dim: #5d6878; --soft: #f5f7f9;
        --good: #1a7f37; --bad: #c62828; --warn: #8a6100; }
@media (prefers-color-scheme: dark) {
  :root { --line: #39424e; --dim: #9aa7b5; --soft: #1b2129;
          --good: #57c278; --bad: #ff7b72; --warn: #d9a93d; } }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0; }
main { max-width: 60rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 0 0 .4rem; }
h4 { font-size: .85rem; margin: .6rem 0 .2rem; color: var(--dim); }
code, pre, .changes { font-family: ui-monospace, monospace; font-size: .88em; }
pre { background: var(--soft); padding: .8rem; overflow-x: auto;
      white-space: pre-wrap; word-break: break-word; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .4rem 0; }
dt { color: var(--dim); } dd { margin: 0; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-size: .92em; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0;
         border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
th { color: var(--dim); font-weight: 600; }
ul { margin: .2rem 0; padding-left: 1.2rem; } .changes { list-style: none; padding: 0; }
.added { color: var(--good); } .removed { color: var(--bad); } .changed { color: var(--warn); }
.chapter { border: 1px solid var(--line); border-left: 4px solid var(--line); border-radius: 6px;
           padding: .8rem 1rem; margin: .8rem 0; break-inside: avoid; }
.chapter.bad { border-left-color: var(--bad); }
.word { font-size: .85em; border: 1px solid currentColor; border-radius: 1em; padding: 0 .6em; }
.word.good { color: var(--good); } .word.bad { color: var(--bad); } .word.plain { color: var(--dim); }
.headline { font-size: 1.1rem; } .gap { color: var(--dim); font-style: italic; }
.graph { margin: 1rem 0; overflow-x: auto; } .graph svg { max-width: 100%; height: auto; }
@media print { main { max-width: none; padding: 0; } body { font-size: 11px; } }
"""
