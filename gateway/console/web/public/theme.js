// Before the first paint: the theme that the viewer chose. Without a choice, the system's.
(function () {
  try {
    var chosen = localStorage.getItem("corvo.theme");
    if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
  } catch (unavailable) {
    // without storage there is no choice to remember
  }
})();
