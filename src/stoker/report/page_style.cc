#include "stoker/report/page_style.h"

namespace stoker::report {

// Colours: one accent for what the report is about; the parts of a step are Okabe and Ito's, which colour-blind people
// tell apart, and carry grains and names besides.
const std::string_view kPageStyle = R"css(
:root{color-scheme:light;--bg:#fbfaf7;--panel:#ffffff;--ink:#1d1a16;--soft:#5c564d;--faint:#777067;--line:#e5dfd5;
--accent:#b4410b;--shade:#1d1a1638;--band:#b4410b1c;--ring:#1d1a16;--failed:#efeae2;--hatch:#b9b0a2;
--h0:#fdf3ea;--h1:#fbe6d4;--h2:#f8d6ba;--h3:#f4c49e;--h4:#efaf80;--h5:#e89962;--h6:#df8245;--h7:#d26b2b;--h8:#bd5317;--h9:#a5420d;
--dark-text:#1d1a16;--light-text:#ffffff;--t0:var(--dark-text);--t6:var(--dark-text);--t8:var(--light-text);
--compute:#9aa6b2;--h2d:#cc79a7;--fetch:#0072b2;--prep:#e69f00;--handoff:#2aa584;--wait:#d9722b;--activity:#9aa6b2}
@media screen and (prefers-color-scheme:dark){:root{color-scheme:dark;--bg:#161412;--panel:#1e1b18;--ink:#f2ede5;--soft:#bdb4a8;--faint:#9a9186;
--line:#37312b;--accent:#ff9c5b;--shade:#000000b0;--band:#ff9c5b26;--ring:#ffffff;--failed:#2a2622;--hatch:#57504a;
--h0:#2a211b;--h1:#38281c;--h2:#48301e;--h3:#5a3920;--h4:#6d4422;--h5:#825026;--h6:#b0723a;--h7:#c98243;--h8:#e39650;--h9:#ffb174;
--dark-text:#161412;--light-text:#f7f2ea;--t0:var(--light-text);--t6:var(--dark-text);--t8:var(--dark-text);--compute:#8a96a3;--activity:#6d7884}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.6 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","Noto Sans","Liberation Sans",Arial,sans-serif;
font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.page{max-width:768px;margin:0 auto;padding:56px 24px 96px}
nav{display:none}
.over{font-size:.8125rem;letter-spacing:.08em;text-transform:uppercase;color:var(--faint);margin:0 0 .75rem}
h1{font-size:1.0625rem;font-weight:600;margin:0 0 1.25rem;color:var(--soft);line-height:1.45}
.headline{font-size:clamp(1.5rem,1.1rem + 1.7vw,2.125rem);line-height:1.25;font-weight:650;letter-spacing:-.012em;margin:0;text-wrap:pretty}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:28px 32px;margin:44px 0 0;padding:0}
.tile{border-top:2px solid var(--line);padding-top:12px}
.tile:first-child{border-top-color:var(--accent)}
.tile dt{font-size:.8125rem;color:var(--soft)}
.tile .figure{margin:0;font-size:1.625rem;line-height:1.3;font-weight:650;letter-spacing:-.01em}
.tile .under{margin:0;font-size:.8125rem;line-height:1.45;color:var(--soft)}
section{margin-top:64px}
h2{font-size:1.25rem;line-height:1.3;font-weight:650;margin:0 0 16px;letter-spacing:-.005em}
h3{font-size:1rem;font-weight:650;margin:32px 0 8px}
p{margin:0 0 12px;max-width:68ch}
ul.findings{list-style:none;margin:0;padding:0;max-width:68ch}
ul.findings li{padding:0 0 0 20px;margin:0 0 12px;position:relative}
ul.findings li:before{content:"";position:absolute;left:0;top:.68em;width:8px;height:2px;background:var(--accent)}
.facts{display:grid;grid-template-columns:minmax(9rem,max-content) minmax(0,1fr);gap:4px 24px;margin:0 0 8px;font-size:.9375rem}
.facts dt{color:var(--soft)}.facts dd{margin:0}
figure{margin:0}
figcaption,.small{font-size:.8125rem;line-height:1.5;color:var(--soft);margin:10px 0 0;max-width:76ch}
.scroll{overflow-x:auto;overflow-y:hidden;background:linear-gradient(to right,var(--bg) 30%,transparent),linear-gradient(to left,var(--bg) 30%,transparent) 100% 0,linear-gradient(to right,var(--shade),transparent),linear-gradient(to left,var(--shade),transparent) 100% 0;
background-repeat:no-repeat;background-size:36px 100%,36px 100%,14px 100%,14px 100%;background-attachment:local,local,scroll,scroll}
svg.chart{display:block;max-width:100%;height:auto;overflow:visible}
svg.heat{max-width:none}
.narrow{display:none}
table{overflow-wrap:break-word;border-collapse:collapse;font-size:.875rem;line-height:1.45;width:100%}
th,td{text-align:right;padding:7px 0 7px 20px;border-bottom:1px solid var(--line);vertical-align:top}
th{font-weight:600;color:var(--soft);vertical-align:bottom}
th.w,td.w{text-align:left}th:first-child,td:first-child{padding-left:0}
td.n{white-space:nowrap}
code,pre{font:.875em/1.55 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace}
td code{overflow-wrap:anywhere}
figure+.scroll{margin-top:28px}
pre{margin:4px 0 20px;padding:12px 16px;background:var(--panel);border:1px solid var(--line);border-radius:6px;white-space:pre-wrap;font-size:.8125rem}
a{color:var(--accent);text-underline-offset:2px}
details summary{cursor:pointer;color:var(--soft);font-size:.9375rem}
details[open] summary{margin-bottom:12px}
.glyph-key{display:inline-block;min-width:1.4em;font-weight:700;text-align:center}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:6px 18px;margin:12px 0 0;padding:0;font-size:.8125rem;color:var(--soft)}
.legend.narrow-legend{display:none}
.legend li{display:flex;align-items:center;gap:7px}
.options{list-style:none;margin:0;padding:0}
.options li{border-top:1px solid var(--line);padding:16px 0 4px}
.options .gain{float:right;font-weight:650;color:var(--accent);padding-left:16px}
.options h3{margin:0 0 4px}
text{font-size:12px;fill:var(--soft);font-family:inherit}
.axis{stroke:var(--faint);stroke-width:1}.grid{stroke:var(--line);stroke-width:1}
.tick{fill:var(--soft)}.axis-name{fill:var(--soft)}.note{fill:var(--faint);font-size:11.5px}
.curve{fill:none;stroke:var(--faint);stroke-width:1.4;stroke-linejoin:round}
.curve.c0{stroke:var(--accent);stroke-width:2.5}
.curve.c1,.leader.c1{stroke-dasharray:5 3}.curve.c2,.leader.c2{stroke-dasharray:1.5 3}.curve.c3,.leader.c3{stroke-dasharray:9 3 2 3}.curve.c4{stroke-dasharray:3 2}.curve.c5{stroke-dasharray:12 4}
.leader{stroke:var(--line);stroke-width:1;stroke-dasharray:none!important}
.point{fill:var(--bg);stroke:var(--faint);stroke-width:1.4}.point.c0{fill:var(--accent);stroke:var(--bg);stroke-width:1.5}
.ring{fill:none;stroke:var(--accent);stroke-width:1.5}
.whisker{stroke:var(--faint);stroke-width:1}.whisker.c0{stroke:var(--accent);stroke-width:1.5}
.reach{fill:transparent;stroke:none}
.value{fill:var(--ink);paint-order:stroke;stroke:var(--bg);stroke-width:4px;stroke-linejoin:round}
.strong{font-weight:650;fill:var(--ink)}.value.strong{font-size:13px;fill:var(--accent)}
.curve-name{fill:var(--soft)}.curve-name.strong{fill:var(--accent)}
.band{fill:var(--band)}.knee{stroke:var(--ink);stroke-width:1;stroke-dasharray:3 3;opacity:.55}
.limit{stroke:var(--ink);stroke-width:1.5;stroke-dasharray:8 4}.limit-name{fill:var(--ink);font-weight:600}
.glyph{fill:var(--ink);font-size:14px;font-weight:700}
.cell-text{font-size:13px;font-weight:600}.cell-name{font-size:10.5px}.cell-glyph{font-size:16px;font-weight:700;fill:var(--ink)}
.cell.failed{fill:var(--failed)}.cell.hatched{fill:url(#hatch)}.cell-ring{fill:none;stroke:var(--ring);stroke-width:2.5;pointer-events:none}
.cell-text,.cell-name,.cell-glyph,.part-text,.grain{pointer-events:none}
.h0{fill:var(--h0)}.h1{fill:var(--h1)}.h2{fill:var(--h2)}.h3{fill:var(--h3)}.h4{fill:var(--h4)}.h5{fill:var(--h5)}.h6{fill:var(--h6)}.h7{fill:var(--h7)}.h8{fill:var(--h8)}.h9{fill:var(--h9)}
.t0,.t1,.t2,.t3,.t4,.t5{fill:var(--t0)}.t6,.t7{fill:var(--t6)}.t8,.t9{fill:var(--t8)}
.s-compute{fill:var(--compute)}.s-h2d{fill:var(--h2d)}.s-fetch{fill:var(--fetch)}.s-prep{fill:var(--prep)}.s-handoff{fill:var(--handoff)}.s-wait{fill:var(--wait)}
.grain{fill:none}.g-h2d{fill:url(#g-h2d)}.g-fetch{fill:url(#g-fetch)}.g-prep{fill:url(#g-prep)}.g-handoff{fill:url(#g-handoff)}.g-wait{fill:url(#g-wait)}
.part-text{fill:#161412;font-size:11.5px;font-weight:600}.n-fetch{fill:#fff}
.bar-name{fill:var(--ink);font-size:13px}.bar-total{fill:var(--soft);font-size:13px}
.activity{fill:var(--activity);opacity:.45}.activity-line{fill:none;stroke:var(--soft);stroke-width:1.25}.depth-line{fill:none;stroke:var(--accent);stroke-width:2}
#tip{position:fixed;z-index:9;max-width:min(340px,calc(100vw - 24px));padding:8px 12px;background:var(--ink);color:var(--bg);border-radius:6px;font-size:.8125rem;line-height:1.45;
white-space:pre-line;pointer-events:none;box-shadow:0 2px 12px #0003}
#tip[hidden]{display:none}
[data-tip]:hover{opacity:.82}.reach:hover{opacity:1}
footer{margin-top:80px;padding-top:16px;border-top:1px solid var(--line);font-size:.8125rem;color:var(--soft)}
@media (min-width:1120px){.page{max-width:1056px;display:grid;grid-template-columns:208px 720px;column-gap:80px;padding-top:72px}
.page>*{grid-column:2}nav{display:block;grid-column:1!important;grid-row:1/span 60;font-size:.8125rem;line-height:1.4}
nav ul{position:sticky;top:72px;list-style:none;margin:0;padding:0}nav li{margin:0 0 9px}nav a{color:var(--soft);text-decoration:none}nav a:hover{color:var(--accent)}}
@media (max-width:767px){.page{padding:32px 16px 64px}.wide{display:none}.narrow{display:block}.legend.narrow-legend{display:flex}.narrow svg.chart{width:100%;max-width:480px}.narrow svg.heat{width:auto;max-width:none}
section{margin-top:52px}.facts{grid-template-columns:1fr;gap:0}.facts dd{margin:0 0 10px}.tiles{grid-template-columns:repeat(2,minmax(0,1fr));gap:24px 20px}.tile .figure{font-size:1.375rem}
.options .gain{float:none;padding:0;display:block}th,td{padding-left:14px}}
@media print{@page{margin:15mm}body{background:#fff;font-size:10.5pt;-webkit-print-color-adjust:exact;print-color-adjust:exact}.page{display:block;max-width:none;padding:0}nav,#tip,.narrow,.narrow-legend,details.trials{display:none!important}
.wide{display:block}section{margin-top:30pt}figure,.tile,tr,pre,.options li,li{break-inside:avoid}h2,h3{break-after:avoid}.scroll{overflow:visible}a{color:inherit}}
)css";

const std::string_view kPageScript =
    "(function(){var tip=document.getElementById('tip');function hide(){tip.hidden=true}"
    "function show(e){var t=e.target.closest?e.target.closest('[data-tip]'):null;if(!t){hide();return}"
    "tip.textContent=t.getAttribute('data-tip');tip.hidden=false;"
    "var x=Math.min(e.clientX+14,document.documentElement.clientWidth-tip.offsetWidth-8),y=e.clientY+18;"
    "if(y+tip.offsetHeight>innerHeight-8){y=e.clientY-tip.offsetHeight-12}"
    "tip.style.left=Math.max(8,x)+'px';tip.style.top=Math.max(8,y)+'px'}"
    "document.addEventListener('pointermove',show);document.addEventListener('pointerdown',show);"
    "document.addEventListener('scroll',hide,true)})();";

const std::string_view kScriptHash = "sha256-UuJxnHyzXZrFxCbdgvxTq0SX4k+YW2u5ydWfOl3m6lA=";

const std::string_view kPatterns =
    R"svg(<svg xmlns="http://www.w3.org/2000/svg" width="0" height="0" style="position:absolute" aria-hidden="true"><defs>
<pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="7" style="stroke:var(--hatch);stroke-width:1.2"/></pattern>
<pattern id="g-fetch" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="8" style="stroke:#fff;stroke-opacity:.3;stroke-width:2"/></pattern>
<pattern id="g-prep" width="6" height="6" patternUnits="userSpaceOnUse"><circle cx="1.5" cy="1.5" r="1" style="fill:#000;fill-opacity:.22"/><circle cx="4.5" cy="4.5" r="1" style="fill:#000;fill-opacity:.22"/></pattern>
<pattern id="g-handoff" width="6" height="6" patternUnits="userSpaceOnUse"><line x1="1" y1="0" x2="1" y2="6" style="stroke:#000;stroke-opacity:.22;stroke-width:1.4"/></pattern>
<pattern id="g-h2d" width="6" height="6" patternUnits="userSpaceOnUse"><line x1="0" y1="1" x2="6" y2="1" style="stroke:#000;stroke-opacity:.22;stroke-width:1.4"/></pattern>
<pattern id="g-wait" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><line x1="0" y1="0" x2="0" y2="8" style="stroke:#000;stroke-opacity:.18;stroke-width:2"/></pattern>
</defs></svg>)svg";

}  // namespace stoker::report
