// Keys: list, make, revoke.
import { $, amount, get, guarded, label, lines, make, post, remove, row, say, start, sure, time } from "./common.js";

const ROLES = { reader: "reading", writer: "showing and reporting", browser: "a web page", admin: "everything" };
const list = (texts) => texts.flatMap((text, k) => (k ? [", ", label(text)] : [label(text)]));

async function show() {
  const { tokens } = await get("v1/tokens");
  say("status", tokens.length ? "" : "There are no keys yet, except the temporary one from the terminal.");
  $("tokens").tBodies[0].replaceChildren(...tokens.map((each) => {
    const button = make("button", "Revoke", { type: "button", className: "quiet" });
    button.setAttribute("aria-label", `Revoke ${each.id}`);
    guarded(button, "click", "status", async () => {
      if (!await sure(["Revoke the key ", make("code", each.id), "? Whatever uses it stops working at once."], "Revoke")) return;
      await remove(`v1/tokens/${each.id}`);
      await show();
    });
    return row(make("code", each.id), ROLES[each.role], each.studies ? list(each.studies) : "all", list(each.origins), label(each.note),
      each.expires ? time(each.expires) : "never", button);
  }));
}

$("role").addEventListener("change", () => { $("for-pages").hidden = $("role").value !== "browser"; });
guarded($("make"), "submit", "make-why", async () => {
  const studies = lines("studies");
  const { token } = await post("v1/tokens", {
    role: $("role").value, studies: studies.length ? studies : null, note: $("note").value.trim(), days: amount("days"),
    origins: $("role").value === "browser" ? lines("origins") : [], rate: amount("rate"),
  });
  $("made").hidden = false;
  $("made-text").textContent = token;
  await show();
});
start(show);
