"""The frame of the page of a run and how it looks, by day, by night and on paper."""

from string import Template

__all__ = ["FRAME"]

_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b2430; --faint: #5b6675;
  --grid: #e4e8ee; --load: #1d3557; --measured: #3d5a80; --expected: #b8502f; --target: #c1121f;
  --running: #b9d3e6; --wanted: #1d3557; --called: #7a5c00; --backlog: #cf9f88;
  --up: #c1121f; --down: #1d7f74; --move: #7029d6; --unusable: #e9ebef; --here: #3d5a8022;
  --chosen: #fff3c4; }
@media screen and (prefers-color-scheme: dark) {
  :root { --paper: #12171e; --ink: #e4e9f0; --faint: #9aa7b6; --grid: #28313c;
    --load: #a9cbee; --measured: #8fb8de; --expected: #f2a488; --target: #ff7b7b;
    --running: #2f4d68; --wanted: #a9cbee; --called: #e3c15a; --backlog: #a06f58;
    --up: #ff7b7b; --down: #55cfc0; --move: #bd9bff; --unusable: #232a34; --here: #8fb8de33;
    --chosen: #4a4218; } }
body { margin: 1.5rem auto; max-width: 1200px; padding: 0 1rem; background: var(--paper);
  color: var(--ink); font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0; }
h2 { font-size: 1.1rem; margin: 1.5rem 0 .5rem; }
p.of { color: var(--faint); margin: .2rem 0 1rem; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr));
  gap: .8rem 1.2rem; margin: 1rem 0; }
dt { color: var(--faint); font-size: .85rem; }
dd { margin: 0; font-size: 1.15rem; font-weight: 600; overflow-wrap: anywhere; }
dd small { display: block; font-size: .85rem; font-weight: 400; color: var(--faint); }
.wide { overflow-x: auto; }
svg { display: block; width: 100%; min-width: 640px; }
svg text { font-size: 11px; fill: var(--ink); }
svg .title { font-weight: 600; }
svg .tick, svg .time { fill: var(--faint); text-anchor: end; }
svg .time { text-anchor: middle; }
path { fill: none; stroke-width: 1.4; }
path.grid { stroke: var(--grid); stroke-width: 1; }
path.unusable { fill: var(--unusable); }
path.load { stroke: var(--load); }
path.line { stroke: var(--measured); stroke-width: .6; opacity: .6; }
path.dots { stroke: var(--measured); stroke-width: 4; stroke-linecap: round; }
path.expected { stroke: var(--expected); stroke-width: 1.8; }
path.target { stroke: var(--target); stroke-dasharray: 6 4; }
path.commits { stroke: var(--faint); stroke-width: 1; opacity: .7; }
path.outside { fill: var(--target); }
path.running { fill: var(--running); }
path.wanted { stroke: var(--wanted); }
path.called { stroke: var(--called); stroke-dasharray: 2 3; }
path.backlog { fill: var(--backlog); }
svg tspan.measured { fill: var(--measured); }
svg tspan.commits { fill: var(--faint); }
svg tspan.expected { fill: var(--expected); }
svg tspan.target, svg tspan.outside { fill: var(--target); }
svg tspan.running { fill: var(--running); }
svg tspan.wanted { fill: var(--wanted); }
svg tspan.called { fill: var(--called); }
.columns rect { fill: transparent; }
.columns rect:hover { fill: var(--here); }
.marks text { text-anchor: middle; }
.marks path { opacity: .55; stroke-width: 1.2; }
.marks.many path { opacity: 0; }
.marks .undone path { stroke-dasharray: 3 3; }
.marks a:target path, .marks a:hover path, .marks a:focus path { opacity: 1; stroke-width: 3; }
.up path { stroke: var(--up); } .down path { stroke: var(--down); }
.move path { stroke: var(--move); }
svg .up text { fill: var(--up); } svg .down text { fill: var(--down); }
svg .move text { fill: var(--move); }
.marks .hold path, .marks .told path { stroke: var(--ink); }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
caption { text-align: left; color: var(--faint); padding-bottom: .3rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0;
  border-bottom: 1px solid var(--grid); }
thead th { color: var(--faint); font-weight: 600; }
td { overflow-wrap: break-word; }
td.short, tbody th, .errors caption { white-space: nowrap; }
tbody th { font-weight: 400; }
table.errors { width: auto; } table.errors td { text-align: right; }
tr:target { background: var(--chosen); }
a { color: inherit; }
@media print {
  body { margin: 0; max-width: none; font-size: 10pt; } .wide { overflow: visible; }
  svg { max-height: 170mm; min-width: 0; }
  tr { break-inside: avoid; } h2, caption { break-after: avoid; } }
"""

FRAME = Template(f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'"/>
<title>$title</title>
<style>{_STYLE}</style>
</head>
<body>
$body
</body>
</html>
""")
"""The page, but for its title and its body; it may load nothing from anywhere."""
