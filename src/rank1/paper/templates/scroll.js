(function () {
  "use strict";
  function hints() {
    document.querySelectorAll(".scrolling").forEach(function (box) {
      var inside = box.querySelector(".scroll");
      box.querySelector(".hint").hidden = inside.scrollWidth <= inside.clientWidth + 1;
    });
  }
  window.addEventListener("resize", hints);
  window.addEventListener("load", hints);
  hints();
}());
