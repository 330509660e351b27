"""The script of a timeline's page, first half: it draws on a canvas what lies in view.

It gets its data as `DATA` (see `timeline_page.data_of`) and finds its page by `NAME`. Bars are found
by halving, and what is narrower than a pixel and a half is drawn together, so that 20,000 bars are as
easy to move about in as twenty. `timeline_hands` is the other half.
"""

DRAWING = r"""
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
      right = wide - 5;  // room for half the head of an arrow at the end
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
      pen.save(); pen.beginPath(); pen.rect(left - 1, 0, wide - left + 1, tall); pen.clip();
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
"""
