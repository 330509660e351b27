// Light or dark: as the system is, or as key D last said. It is remembered where the browser allows.
const theme = (() => {
  const page = document.documentElement;
  let kept = null;
  try { kept = localStorage.getItem('toytorch-theme'); } catch (refused) { /* a file without storage */ }
  const show = dark => page.classList.toggle('dark', dark);
  const system = window.matchMedia('(prefers-color-scheme: dark)');
  show(kept ? kept === 'dark' : system.matches);
  system.addEventListener('change', () => { if (!kept) show(system.matches); });
  const toggle = () => {
    kept = show(!page.classList.contains('dark')) ? 'dark' : 'light';
    try { localStorage.setItem('toytorch-theme', kept); } catch (refused) { /* until it is closed */ }
  };
  // on paper: light, and steppers at their last step, which has the most to see
  window.addEventListener('beforeprint', () => {
    show(false);
    document.querySelectorAll('[data-go="last"]').forEach(button => button.click());
  });
  return {toggle};
})();
