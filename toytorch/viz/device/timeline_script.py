"""The script of a timeline's page: it draws on a canvas what lies in view, and zooms.

It gets its data as `DATA` (see `timeline_page.data_of`) and finds its page by `NAME`. Bars are found
by halving, and what is narrower than a pixel and a half is drawn together, so that 20,000 bars are as
easy to move about in as twenty.
"""

SCRIPT = r"""
(function () {
  var D = DATA, C = D.colours, M = D.measures;
  var FONT = M.font + 'px Helvetica Neue, Helvetica, Arial, sans-serif';

  function unit(us) { return us >= 1e6 ? ['s', 1e6] : us >= 1e3 ? ['ms', 1e3] : ['µs', 1]; }
  function time(us) {
    var u = unit(Math.abs(us));
    return +(us / u[1]).toPrecision(4) + ' ' + u[0];
  }
  // a moment, with digits down to `least` microseconds
  function clock(us, least) {
    var u = unit(Math.abs(us)), digits = Math.max(0, Math.ceil(Math.log10(u[1] / least) - 1e-9));
    var text = (us / u[1]).toFixed(digits);
    return (digits ? text.replace(/\.?0+$/, '') : text) + ' ' + u[0];
  }
  function bytes(n) {
    var u = n >= 1073741824 ? ['GB', 1073741824] : n >= 1048576 ? ['MB', 1048576]
      : n >= 1024 ? ['KB', 1024] : ['B', 1];
    return +(n / u[1]).toPrecision(3) + ' ' + u[0];
  }
  function stepOf(least) {
    for (var power = 1e-3; ; power *= 10)
      for (var i = 0; i < 3; i++) if ([1, 2, 5][i] * power >= least) return [1, 2, 5][i] * power;
  }
  function ticks(first, last, count) {
    var step = stepOf((last - first) / Math.max(count, 1));
    var u = unit(Math.max(Math.abs(first), Math.abs(last)));
    var digits = Math.max(0, -Math.floor(Math.log10(step / u[1]) + 1e-9)), found = [];
    for (var n = Math.ceil(first / step - 1e-9); n * step <= last + step * 1e-9; n++)
      found.push([n * step, (n ? (n * step / u[1]).toFixed(digits) : '0') + ' ' + u[0]]);
    return found;
  }
  // the last of list[low..high) that is not after the value, or low - 1
  function before(list, value, low, high) {
    while (low < high) {
      var middle = (low + high) >> 1;
      if (list[middle] <= value) low = middle + 1; else high = middle;
    }
    return low - 1;
  }

  document.querySelectorAll('[data-tt-timeline="NAME"]:not([data-ready])').forEach(function (root) {
    root.setAttribute('data-ready', '');
    var part = function (name) { return root.querySelector('[data-part="' + name + '"]'); };
    var canvas = part('view'), pen = canvas.getContext('2d'), tip = part('tip');
    var from = D.first, to = D.last, hovered = -1, drag = null;
    var wide, tall, bottom, crowded, left, right, lanes, curves, laneOf = new Int32Array(D.s.length);
    var linksOf = {};
    D.links.forEach(function (link, n) {
      [0, 1].forEach(function (end) { (linksOf[link[end]] = linksOf[link[end]] || []).push(n); });
    });
    part('still').style.display = 'none';
    part('live').style.display = 'block';

    function x(us) { return left + (us - from) / (to - from) * (right - left); }
    function at(px) { return from + (px - left) / (right - left) * (to - from); }

    function layout() {
      wide = Math.max(240, canvas.parentNode.clientWidth);
      var above = wide < M.above, names = 0;
      pen.font = FONT;
      D.rows.forEach(function (row) { names = Math.max(names, pen.measureText(row[0]).width); });
      left = above || !names ? 1 : Math.min(names, M.name) + 10;
      right = wide - 1;
      lanes = []; curves = [];
      var y = 26, group = null;
      D.rows.forEach(function (row) {
        var line = group !== null && group !== row[1];
        if (line) y += M.gap;
        group = row[1];
        var nameAt = y + (above ? 11 : 13);
        if (above && row[0]) y += 16;
        row[2].forEach(function (range, n) {
          for (var i = range[0]; i < range[1]; i++) laneOf[i] = lanes.length;
          lanes.push({ y: y, from: range[0], to: range[1], name: n ? '' : row[0], nameAt: nameAt,
            rule: line && !n ? nameAt - 13 - (above ? 0 : 2) : 0 });
          y += M.lane;
        });
        y += M.gap;
      });
      bottom = y - M.gap;
      D.curves.forEach(function (curve) {
        curves.push({ y: y + 4, base: y + 22 + M.memory });
        y += 22 + M.memory + M.gap;
      });
      tall = y + 4;
      var ratio = window.devicePixelRatio || 1;
      canvas.style.height = tall + 'px';
      canvas.width = Math.round(wide * ratio);
      canvas.height = Math.round(tall * ratio);
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      draw();
    }

    function fit(text, room) {
      if (pen.measureText(text).width <= room) return text;
      var low = 0, high = text.length - 1;
      while (low < high) {
        var keep = (low + high + 1) >> 1, tail = keep >> 1;
        var said = text.slice(0, keep - tail) + '…' + text.slice(text.length - tail);
        if (pen.measureText(said).width <= room) low = keep; else high = keep - 1;
      }
      return low < 1 ? '' : text.slice(0, low - (low >> 1)) + '…' +
        text.slice(text.length - (low >> 1));
    }
    function line(points, colour, width, dash) {
      pen.beginPath();
      points.forEach(function (p, n) { if (n) pen.lineTo(p[0], p[1]); else pen.moveTo(p[0], p[1]); });
      pen.strokeStyle = colour; pen.lineWidth = width; pen.setLineDash(dash || []);
      pen.stroke(); pen.setLineDash([]);
    }
    function box(i, a, b, y) {
      var kind = D.kinds[D.k[i]], w = Math.max(b - a, 0.8);
      pen.fillStyle = kind[1];
      pen.fillRect(a, y, w, M.bar);
      if (kind[3]) {
        pen.save(); pen.beginPath(); pen.rect(a, y, w, M.bar); pen.clip(); pen.beginPath();
        for (var c = Math.ceil((a + y) / 6) * 6; c < b + y + M.bar; c += 6) {
          pen.moveTo(c - y - M.bar, y + M.bar); pen.lineTo(c - y, y);
        }
        pen.strokeStyle = kind[3]; pen.lineWidth = 0.9; pen.stroke(); pen.restore();
      }
      pen.strokeStyle = kind[2]; pen.lineWidth = 0.8;
      if (w > 1) pen.strokeRect(a + 0.4, y + 0.4, w - 0.8, M.bar - 0.8);
      if (kind[3] || w < 16) return;
      var label = D.names[D.n[i]][1], text = fit(label, w - 8);
      if (w > 40 || text === label) {
        pen.fillStyle = C.ink; pen.fillText(text, a + 4, y + 12.5);
      }
    }
    function tiny(run, y) {
      if (!run) return;
      var most = 0;
      run.time.forEach(function (t, kind) { if (t > run.time[most]) most = kind; });
      pen.fillStyle = D.kinds[most][4];
      pen.fillRect(run.a, y, Math.max(run.b - run.a, 0.8), M.bar);
    }
    function drawLane(lane) {
      var run = null, i = before(D.s, from, lane.from, lane.to);
      for (i = Math.max(i, lane.from); i < lane.to && D.s[i] <= to; i++) {
        if (D.s[i] + D.d[i] < from) continue;
        var a = Math.max(x(D.s[i]), left), b = Math.min(x(D.s[i] + D.d[i]), right);
        if (b - a < 1.5) {
          if (!run || a - run.b >= 1.5 || b - run.a > M.merged) {
            tiny(run, lane.y);
            run = { a: a, b: b, time: D.kinds.map(function () { return 0; }) };
          }
          run.b = b;
          run.time[D.k[i]] += D.d[i];
          continue;
        }
        tiny(run, lane.y); run = null;
        // a bar that began out of view keeps its left edge there
        box(i, a, b, lane.y);
      }
      tiny(run, lane.y);
    }
    function arrow(link, width) {
      var up = lanes[laneOf[link[0]]].y, low = lanes[laneOf[link[1]]].y;
      var down = low > up ? 1 : low < up ? -1 : 0, half = M.bar / 2;
      var ax = x(link[2]), bx = x(link[3]);
      var ay = up + half + down * half, by = low + half - down * half;
      var bend = (by - ay) / 2;
      pen.beginPath(); pen.moveTo(ax, ay);
      pen.bezierCurveTo(ax, ay + bend, bx, by - down * 4 - bend, bx, by - down * 4);
      pen.strokeStyle = D.ink[link[4]]; pen.lineWidth = width; pen.stroke();
      pen.beginPath(); pen.moveTo(bx, by);
      if (down) { pen.lineTo(bx - 3, by - down * 5.5); pen.lineTo(bx + 3, by - down * 5.5); }
      else { pen.lineTo(bx - 5.5, by - 3); pen.lineTo(bx - 5.5, by + 3); }
      pen.closePath(); pen.fillStyle = D.ink[link[4]]; pen.fill();
    }
    function drawLinks() {
      crowded = false;
      [0, 1].forEach(function (key) {
        var seen = {}, found = [], most = key ? M.many : M.launches;
        D.links.forEach(function (link) {
          if (link[5] !== key || link[3] < from || link[2] > to || found.length > most) return;
          // several that lie on one pixel are one arrow
          var place = [laneOf[link[0]], laneOf[link[1]], Math.round(x(link[2]) / 2),
            Math.round(x(link[3]) / 2)].join();
          if (!seen[place]) found.push(link);
          seen[place] = true;
        });
        if (found.length > most) crowded = crowded || key;
        else found.forEach(function (link) { arrow(link, 1); });
      });
      (linksOf[hovered] || []).forEach(function (n) { arrow(D.links[n], 2); });
    }
    function steps(times, values, y, highest) {
      var n = before(times, from, 0, times.length), now = n < 0 ? 0 : values[n];
      var points = [[left, y(now)]];
      for (n = n + 1; n < times.length && times[n] <= to;) {
        // of what falls on one place: the least, the greatest and the last, or the greatest alone
        var px = x(times[n]), low = values[n], high = low, first = n, apart = highest ? 3 : 0.5;
        for (n++; n < times.length && times[n] <= to && x(times[n]) - px < apart; n++) {
          low = Math.min(low, values[n]); high = Math.max(high, values[n]);
        }
        points.push([px, points[points.length - 1][1]]);
        var many = n - first > 2;
        if (low !== high && !highest) points.push([px, y(low)], [px, y(high)]);
        points.push([px, y(highest && many ? high : values[n - 1])]);
      }
      points.push([right, points[points.length - 1][1]]);
      return points;
    }
    function drawCurve(curve, place) {
      var most = 1, least = 0;
      [curve[2], curve[4]].forEach(function (values) {
        values.forEach(function (v) { most = Math.max(most, v); least = Math.min(least, v); });
      });
      var y = function (v) { return place.base - (v - least) / (most - least) * M.memory; };
      var points = steps(curve[1], curve[2], y);
      pen.beginPath(); pen.moveTo(left, place.base);
      points.forEach(function (p) { pen.lineTo(p[0], p[1]); });
      pen.lineTo(right, place.base); pen.closePath();
      pen.fillStyle = C.area; pen.fill();
      line(points, C.curve, 1.3);
      if (curve[3].length) line(steps(curve[3], curve[4], y, true), C.edge, 1.1, [4, 3]);
    }
    function say(name, y, room) {
      var text = fit(name, room), long = pen.measureText(text).width;
      pen.fillStyle = C.paper;
      // on paper of its own where arrows and lines pass below it
      if (left === 1 || long > left) pen.fillRect(0, y - 10, long + 3, 13);
      pen.fillStyle = C.muted;
      pen.fillText(text, 1, y);
    }
    function draw() {
      pen.clearRect(0, 0, wide, tall);
      pen.font = FONT;
      var last = curves.length ? curves[curves.length - 1].base : bottom;
      ticks(from - D.origin, to - D.origin, Math.floor((right - left) / 85)).forEach(function (tick) {
        var px = x(tick[0] + D.origin), room = pen.measureText(tick[1]).width;
        line([[px, 18], [px, last]], C.frame, 1);
        pen.fillStyle = C.muted;
        pen.fillText(tick[1], Math.min(Math.max(px - room / 2, 1), right - room), 13);
      });
      lanes.forEach(function (lane) {
        if (lane.rule) line([[0, lane.rule], [wide, lane.rule]], C.faint, 1);
      });
      pen.save(); pen.beginPath(); pen.rect(left - 1, 0, right - left + 2, tall); pen.clip();
      lanes.forEach(drawLane);
      drawLinks();
      if (hovered >= 0) {
        var lane = lanes[laneOf[hovered]], a = x(D.s[hovered]), b = x(D.s[hovered] + D.d[hovered]);
        pen.strokeStyle = C.ink; pen.lineWidth = 1.6;
        pen.strokeRect(a, lane.y, Math.max(b - a, 1), M.bar);
      }
      pen.restore();
      D.curves.forEach(function (curve, n) { drawCurve(curve, curves[n]); });
      lanes.forEach(function (lane) {
        if (lane.name) say(lane.name, lane.nameAt, left > 1 ? M.name : wide - 4);
      });
      D.curves.forEach(function (curve, n) { say(curve[0], curves[n].y + 10, wide - 4); });
      if (drag && drag.picks) {
        pen.fillStyle = C.pick;
        pen.fillRect(Math.min(drag.x, drag.now), 0, Math.abs(drag.now - drag.x), tall);
      }
      var least = (to - from) / 1000;
      part('span').textContent = clock(from - D.origin, least) + ' to ' + clock(to - D.origin, least)
        + (crowded ? '; zoom in for arrows' : '');
    }

    // view ------------------------------------------------------------------------------------
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
