"""The script of a timeline's page, second half: wheel, mouse, keys, and what the mouse rests on.

It goes on where `timeline_script` ends, inside the same functions.
"""

HANDS = r"""    // view ------------------------------------------------------------------------------------
    function show(a, b) {
      var most = D.last - D.first, span = Math.min(Math.max(b - a, Math.min(most, 1e-2)), most);
      var middle = (a + b) / 2;
      from = Math.min(Math.max(middle - span / 2, D.first), D.last - span);
      to = from + span;
      draw();
    }
    function zoom(factor, around) {
      // the time under the pointer stays where it is
      var a = around - (around - from) * factor, span = (to - from) * factor;
      if (span >= D.last - D.first) return show(D.first, D.last);
      if (a < D.first) a = D.first;
      if (a + span > D.last) a = D.last - span;
      show(a, a + span);
    }
    function move(us) { show(from + us, to + us); }
    var go = {
      'in': function () { zoom(0.5, (from + to) / 2); },
      out: function () { zoom(2, (from + to) / 2); },
      left: function () { move(-(to - from) / 5); },
      right: function () { move((to - from) / 5); },
      whole: function () { show(D.first, D.last); }
    };

    // the bar under the pointer ---------------------------------------------------------------
    function find(px, py) {
      var lane = lanes.find(function (l) { return py >= l.y - 1 && py <= l.y + M.bar + 1; });
      if (!lane || px < left - 2 || px > right + 2) return -1;
      var us = at(px), near = (to - from) / (right - left) * 2;
      var i = before(D.s, us + near, lane.from, lane.to), best = -1, gap = near;
      for (var n = 0; n < 8 && i - n >= lane.from; n++) {
        var s = D.s[i - n], e = s + D.d[i - n], off = us < s ? s - us : us > e ? us - e : 0;
        if (off < gap || (off === 0 && best < 0)) { best = i - n; gap = off; }
        if (off === 0) break;
      }
      return best;
    }
    function told(px, py) {
      var i = find(px, py);
      if (i >= 0) {
        return [D.names[D.n[i]][0], time(D.d[i]) + ' from ' + clock(D.s[i] - D.origin, 0.01)]
          .concat(D.facts[D.f[i]]);
      }
      for (var n = 0; n < curves.length; n++) {
        if (py < curves[n].y || py > curves[n].base || px < left || px > right) continue;
        var curve = D.curves[n], us = at(px);
        var a = before(curve[1], us, 0, curve[1].length), b = before(curve[3], us, 0, curve[3].length);
        var said = ['at ' + clock(us - D.origin, (to - from) / 1000), bytes(a < 0 ? 0 : curve[2][a]) + ' in use'];
        if (curve[3].length) said.push(bytes(b < 0 ? 0 : curve[4][b]) + ' reserved');
        return said;
      }
      return null;
    }
    function hover(px, py) {
      var lines = told(px, py), i = find(px, py);
      tip.textContent = '';
      (lines || []).forEach(function (text, n) {
        var row = document.createElement('div');
        row.textContent = text;
        if (!n) row.style.fontWeight = 'bold';
        tip.appendChild(row);
      });
      tip.style.display = lines ? 'block' : 'none';
      if (lines) {
        var live = part('live'), room = root.clientWidth;
        tip.style.left = '0px';
        var w = tip.offsetWidth, h = tip.offsetHeight;
        var px0 = canvas.offsetLeft + px + 14, py0 = canvas.offsetTop + py + 16;
        if (px0 + w > room - 4) px0 = Math.max(4, canvas.offsetLeft + px - w - 10);
        if (py0 + h > root.clientHeight - 2) py0 = Math.max(2, canvas.offsetTop + py - h - 10);
        tip.style.left = px0 + 'px'; tip.style.top = py0 + 'px';
      }
      if (i !== hovered) { hovered = i; draw(); }
    }
    function spot(event) {
      var edge = canvas.getBoundingClientRect();
      // a slide may be scaled: from pixels of the screen to those of the canvas
      return [(event.clientX - edge.left) * (wide / (edge.width || wide)),
        (event.clientY - edge.top) * (tall / (edge.height || tall))];
    }

    canvas.addEventListener('wheel', function (event) {
      var scale = event.deltaMode ? 30 : 1, dx = event.deltaX * scale, dy = event.deltaY * scale;
      if (event.shiftKey && !dx) { dx = dy; dy = 0; }
      // all is in view already: the wheel is the page's
      if (dy > 0 && to - from >= (D.last - D.first) * 0.9999) return;
      event.preventDefault();
      if (Math.abs(dx) > Math.abs(dy)) move(dx / (right - left) * (to - from));
      else zoom(Math.exp(Math.max(-1, Math.min(1, dy * 0.002))), at(spot(event)[0]));
      hover(spot(event)[0], spot(event)[1]);
    }, { passive: false });
    canvas.addEventListener('pointerdown', function (event) {
      if (event.button) return;
      var p = spot(event);
      drag = { x: p[0], now: p[0], picks: !event.shiftKey && p[1] > 18, from: from, to: to };
      try { canvas.setPointerCapture(event.pointerId); } catch (error) { /* a made-up pointer */ }
      root.focus({ preventScroll: true });
      hover(p[0], p[1]);
    });
    canvas.addEventListener('pointermove', function (event) {
      var p = spot(event);
      if (!drag) return hover(p[0], p[1]);
      drag.now = p[0];
      if (drag.picks) return draw();
      var us = (drag.x - p[0]) / (right - left) * (drag.to - drag.from);
      show(drag.from + us, drag.to + us);
    });
    function release() {
      var done = drag;
      drag = null;
      if (!done || !done.picks) return;
      var a = at(Math.max(left, Math.min(done.x, done.now)));
      var b = at(Math.min(right, Math.max(done.x, done.now)));
      if (Math.abs(done.now - done.x) > 4 && b > a) show(a, b); else draw();
    }
    canvas.addEventListener('pointerup', release);
    canvas.addEventListener('pointercancel', function () { drag = null; draw(); });
    canvas.addEventListener('pointerleave', function () { if (!drag) hover(-9, -9); });
    canvas.addEventListener('dblclick', go.whole);
    root.querySelectorAll('[data-go]').forEach(function (button) {
      button.addEventListener('click', function () { go[button.getAttribute('data-go')](); });
    });
    var keys = { '+': 'in', '=': 'in', '-': 'out', '_': 'out', ArrowLeft: 'left',
      ArrowRight: 'right', '0': 'whole', Home: 'whole', Escape: 'whole' };
    root.addEventListener('keydown', function (event) {
      var name = keys[event.key];
      if (!name || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      event.stopPropagation();
      go[name]();
    });
    layout();
    if (window.ResizeObserver) new ResizeObserver(function () {
      if (Math.max(240, canvas.parentNode.clientWidth) !== wide) layout();
    }).observe(canvas.parentNode);
    else window.addEventListener('resize', layout);
  });
})();
"""
