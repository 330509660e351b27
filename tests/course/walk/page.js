// What the walk asks of JupyterLab's page. `jupyterapp` is there by --LabApp.expose_app_in_browser.
window.walk = (() => {
  const panel = () => window.jupyterapp
    && [...window.jupyterapp.shell.widgets('main')].find(one => one.context);
  const notebook = () => panel().content;
  const cell = index => notebook().widgets[index];
  const pause = ms => new Promise(go => setTimeout(go, ms));

  const ready = name => {
    const now = panel();
    const kernel = now && now.context && now.context.path.endsWith(name)
      && now.sessionContext && now.sessionContext.session && now.sessionContext.session.kernel;
    return Boolean(kernel && kernel.status === 'idle' && notebook().widgets.length > 1
      && notebook().model);
  };

  const cells = () => notebook().widgets.map(one => ({
    id: one.model.id, kind: one.model.type, source: one.model.sharedModel.getSource(),
    tags: one.model.getMetadata('tags') || [], toytorch: one.model.getMetadata('toytorch') || {},
  }));

  // make a cell the active one, in command mode, with the keyboard's focus
  const select = async index => {
    notebook().activeCellIndex = index;
    notebook().mode = 'command';
    await notebook().scrollToItem(index, 'smart').catch(() => null);
    notebook().node.focus();
  };

  // call before the key that runs the cell; `finished` then waits for its end
  let pending = null;
  const watch = index => {
    const model = cell(index).model;
    pending = new Promise(done => {
      const changed = (_, change) => {
        if (change.name === 'executionCount' && change.newValue !== null) {
          model.stateChanged.disconnect(changed);
          done();
        }
      };
      model.stateChanged.connect(changed);
    }).then(async () => {
      const kernel = panel().sessionContext.session.kernel;
      while (model.executionState !== 'idle' || kernel.status !== 'idle') await pause(5);
    });
  };
  const finished = () => pending;

  const said = index => {
    const outputs = cell(index).model.outputs.toJSON();
    const error = outputs.find(output => output.output_type === 'error');
    return {
      count: outputs.length, error: error ? `${error.ename}: ${error.evalue}` : '',
      warned: outputs.filter(o => o.name === 'stderr').map(o => [].concat(o.text).join('')).join(''),
      text: cell(index).outputArea.node.textContent,
    };
  };

  // the blocks of code that a cell's output shows
  const code = index => [...cell(index).outputArea.node.querySelectorAll('pre.code, pre > code')]
    .map(one => one.textContent).filter((text, at, all) => all.indexOf(text) === at);

  // pixels: what sticks out, what must be scrolled, what is too small to read
  const measure = async index => {
    await notebook().scrollToItem(index, 'start').catch(() => null);
    await pause(40);
    const area = cell(index).outputArea;
    if (!area || !area.node.isConnected) return {height: 0, wide: [], tiny: []};
    const room = area.node.getBoundingClientRect();
    const wide = [], tiny = [];
    for (const one of area.node.querySelectorAll('.jp-OutputArea-output, .jp-OutputArea-output *')) {
      const box = one.getBoundingClientRect();
      if (!box.width || !box.height) continue;
      const name = `${one.tagName.toLowerCase()}${one.className.baseVal ?? '.' + one.className}`;
      const inside = one.closest('svg') !== null && one.tagName !== 'svg';
      const style = getComputedStyle(one);
      const scrolls = !inside && !style.display.startsWith('inline')
        && one.scrollWidth - one.clientWidth > 2;
      if (scrolls) wide.push(`${name} scrolls ${one.scrollWidth - one.clientWidth}px`);
      else if (!inside && box.right - room.right > 2 && !one.closest('pre'))
        wide.push(`${name} sticks out ${Math.round(box.right - room.right)}px`);
      if (one.tagName === 'text' && one.textContent.trim()) {
        const scale = one.getScreenCTM();
        const size = parseFloat(style.fontSize) * Math.hypot(scale.a, scale.b);
        if (size < 7.5) tiny.push(`“${one.textContent.trim().slice(0, 20)}” ${size.toFixed(1)}px`);
      }
      if (one.tagName === 'IMG' && box.width < 0.55 * one.naturalWidth)
        tiny.push(`picture at ${Math.round(100 * box.width / one.naturalWidth)}%`);
    }
    return {height: Math.round(room.height), wide: wide.slice(0, 3), tiny: tiny.slice(0, 3)};
  };

  // scrolling in steps of a page, for pictures of the whole notebook
  const outer = () => notebook().node.querySelector('.jp-WindowedPanel-outer') || notebook().node;
  const top = async () => { outer().scrollTop = 0; await pause(300); };
  const down = async overlap => {
    const node = outer(), before = node.scrollTop;
    node.scrollTop += node.clientHeight - overlap;
    await pause(350);
    return node.scrollTop > before + 4;
  };

  const save = () => panel().context.save().then(() => true);

  return {ready, cells, select, watch, finished, said, code, measure, top, down, save};
})();
true;
