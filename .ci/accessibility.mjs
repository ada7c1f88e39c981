// Open pages in Chromium as on a phone and a desk, light and dark, and print them: console, width, axe-core.
// Run by hand:  npm install --no-save playwright-core axe-core && node .ci/accessibility.mjs PAGE.html ...
// Pictures and PDF files are written beside each page, to be looked at. The exit code is 1 if something is wrong.
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const axe = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const looks = { light: [1280, "light"], dark: [1280, "dark"], phone: [375, "light"], "phone-dark": [320, "dark"] };
let isWrong = false;

for (const file of process.argv.slice(2)) {
  const stem = file.replace(/\.html$/, "");
  for (const [look, [width, colorScheme]] of Object.entries(looks)) {
    const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
    const faults = [];
    page.on("console", (message) => faults.push(`console: ${message.text()}`));
    page.on("pageerror", (error) => faults.push(`error: ${error}`));
    page.on("request", (request) => {
      if (!/^(file|data):/.test(request.url())) faults.push(`request: ${request.url()}`);
    });
    await page.goto(pathToFileURL(path.resolve(file)).href);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    if (wide > width) faults.push(`${wide} pixels wide on a screen of ${width}`);
    await page.screenshot({ path: `${stem}-${look}.png`, fullPage: true });
    if (look === "dark") await page.pdf({ path: `${stem}.pdf`, format: "A4", printBackground: true });
    await page.addScriptTag({ content: axe });
    const { violations } = await page.evaluate(() => window.axe.run());
    faults.push(...violations.map((each) => `axe: ${each.impact}, ${each.id} at ${each.nodes[0].target}`));
    isWrong ||= faults.length > 0;
    console.log(`${file}, ${look}: ${faults.join("; ") || "nothing wrong"}`);
    await page.close();
  }
}
await browser.close();
process.exit(isWrong ? 1 : 0);
