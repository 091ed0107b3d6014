(function () {
  "use strict";
  var box = document.getElementById("steps"), frames = box.querySelectorAll(".frame");
  var slider = document.getElementById("slider");
  var back = document.getElementById("back"), next = document.getElementById("next");
  function show(k) {
    k = Math.max(0, Math.min(frames.length - 1, k));
    frames.forEach(function (frame, i) { frame.classList.toggle("off", i !== k); });
    slider.value = k;
    slider.setAttribute("aria-valuetext", frames[k].querySelector("strong").textContent);
    back.disabled = k === 0;
    next.disabled = k === frames.length - 1;
  }
  slider.addEventListener("input", function () { show(Number(slider.value)); });
  back.addEventListener("click", function () { show(Number(slider.value) - 1); });
  next.addEventListener("click", function () { show(Number(slider.value) + 1); });
  box.classList.add("stepped");
  box.querySelector(".steps").hidden = false;
  show(3);
}());
