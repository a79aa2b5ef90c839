/** The place Work in a real browser: the plan, tasks and artifacts of a real gateway, with words that want to be scripts. */
import { mkdir, readFile, truncate, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { listen } from '../fakes/http-server.js';
import { type ChatBody, type FakeModel, startFakeModel } from '../fakes/model.js';
import { eventually, type Home, makeHome, type Running, run } from '../harness/gateway.js';
import { seriousFaults } from './axe.js';
import { describeInChromium, launchChromium } from './board.js';

const SCRIPT = `<script>document.title = 'taken'</script><img src=x onerror="document.title = 'taken'">`;
const SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30" onload="parent.document.title = 'taken'"><script>parent.document.title = 'taken'</script><rect width="40" height="30" fill="teal"/></svg>`;
const PDF = `%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R/OpenAction<</S/JavaScript/JS(app.alert\\('taken'\\); this.submitForm\\('https://evil.invalid'\\))>>>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]>>endobj
trailer<</Root 1 0 R>>
%%EOF`;

/** How far the page is wider than the screen. */
const TOO_WIDE = `(() => {
  const { scrollWidth, clientWidth } = document.querySelector('main');
  return scrollWidth - clientWidth + document.documentElement.scrollWidth - innerWidth;
})()`;
let model: FakeModel;
let home: Home;
let gateway: Running;
let url: string;
let browser: Browser;
let release: () => void = () => {};
const opened: { page: Page; faults: string[] }[] = [];

function reply(body: ChatBody) {
  const asked = JSON.stringify(body.messages);
  const isAfterCall = body.messages.at(-1)?.role === 'tool';
  if (asked.includes('fail at once')) return { status: 400, body: { error: { message: 'no such model' } } };
  if (asked.includes('look around') && !isAfterCall) {
    return { calls: [{ name: 'find_nothing', arguments: { where: SCRIPT } }] };
  }
  if (asked.includes('wait for me')) {
    return new Promise<string>((resolve) => {
      release = () => resolve('I waited.');
    });
  }
  if (!asked.includes('make files')) return `**Done**: ${SCRIPT}`;
  const deltas = [
    { id: 'picture', title: SCRIPT, type: 'image/svg+xml', content: SVG },
    { id: 'page', title: 'A page', type: 'text/html', content: SCRIPT },
    { id: 'words', title: 'Words', content: `# Words\n\n${SCRIPT}\n\n[click](javascript:alert)` },
    { id: 'code.py', type: 'text/x-python', content: 'def f():\n    return "x"\n' },
  ];
  return `Here they are.\n\n\`\`\`json\n${JSON.stringify({ artifact_deltas: deltas })}\n\`\`\`\n`;
}

beforeAll(async () => {
  model = await startFakeModel({ reply });
  // The same after a restart.
  const free = await listen(createServer());
  await free.close();
  home = await makeHome({
    ...{ board: { port: Number(new URL(free.url).port) }, timezone: 'UTC' },
    model: { base_url: model.url, name: 'fake' },
  });
  gateway = run(home);
  url = await gateway.url();
  browser = await launchChromium();
});
afterAll(async () => {
  await browser?.close();
  await gateway?.stop();
  await model?.close();
  await home?.remove();
});
afterEach(async () => {
  release();
  for (const { page, faults } of opened.splice(0)) {
    expect(await page.title()).toMatch(/coterie$/);
    await page.context().close();
    expect(faults).toEqual([]);
  }
});

async function open(hash: string, options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('console', (message) => {
    // Refusals and broken connections are what some of this is about.
    const isExpected = /Failed to load resource|WebSocket connection/.test(message.text());
    if (message.type() === 'error' && !isExpected) faults.push(message.text());
  });
  opened.push({ page, faults });
  await page.goto(`${url}/${hash}`);
  return page;
}

async function read<Body>(path: string): Promise<Body> {
  return (await (await fetch(`${url}/${path}`)).json()) as Body;
}
const plan = async () => (await read<{ content: string }>('api/workspace/plan')).content;
const allTasks = async () => (await read<{ tasks: { id: string; goal: string }[] }>('api/tasks')).tasks;
async function putPlan(content: string): Promise<void> {
  const answer = await fetch(`${url}/api/workspace/plan`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ content }),
  });
  expect(answer.status).toBe(200);
}
const text = (page: Page) => page.getByRole('textbox', { name: 'task.md', exact: true });
const save = (page: Page) => page.getByRole('button', { name: 'Save', exact: true }).click();
const saved = (page: Page) =>
  page
    .getByRole('status')
    .filter({ hasText: /^Saved$/ })
    .waitFor();
const tasks = (page: Page) => page.getByRole('list', { name: 'Tasks', exact: true });
const task = (page: Page, goal: string) => tasks(page).getByRole('listitem').filter({ hasText: goal });

async function start(page: Page, goal: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Goal', exact: true }).fill(goal);
  await page.getByRole('button', { name: 'Start', exact: true }).click();
  await task(page, goal).first().waitFor();
}

describeInChromium('the plan', () => {
  it('has boxes of which each changes one character, in thousands of lines with their line ends', async () => {
    const lines = Array.from({ length: 5_000 }, (_, n) =>
      n % 10 === 0 ? `## Part ${n}` : `${'  '.repeat(n % 3)}- [ ] step ${n} ${n === 1 ? SCRIPT : ''}`,
    );
    const before = lines.join('\r\n');
    await putPlan(before);
    const page = await open('#/work');
    await page.getByRole('checkbox', { name: `step 1 ${SCRIPT}`, exact: true }).check();
    await page.getByRole('checkbox', { name: 'step 3', exact: true }).check();
    await page.getByRole('checkbox', { name: 'step 3', exact: true }).uncheck();
    await page.getByRole('button', { name: 'Show all 4500 steps' }).click();
    // By role and name, a look at so many takes seconds.
    const last = page.locator('input[type=checkbox]').last();
    expect(await last.ariaSnapshot()).toContain('"step 4999"');
    await last.focus();
    await page.keyboard.press('Space');
    expect(await last.isChecked()).toBe(true);
    await save(page);
    await saved(page);
    const after = before.replace('[ ] step 1 ', '[x] step 1 ').replace('[ ] step 4999', '[x] step 4999');
    expect(await plan()).toBe(after);
    await text(page).focus();
    await page.keyboard.press('Control+End');
    await page.keyboard.type('\n- [X] one more');
    const typing = Date.now();
    await page.keyboard.type('!');
    expect(Date.now() - typing).toBeLessThan(1_000);
    expect(await last.ariaSnapshot()).toBe('- checkbox "one more!" [checked]');
    await page.keyboard.press('Control+s');
    await saved(page);
    expect(await plan()).toBe(`${after}\r\n- [X] one more!`);
  });

  it('edited in two tabs loses nothing of either', async () => {
    await putPlan('- [ ] one\n');
    const [a, b] = [await open('#/work'), await open('#/work/plan')];
    await text(a).fill('of a\n');
    await text(b).fill('of b\n');
    await save(a);
    await saved(a);
    await save(b);
    const dialog = b.getByRole('dialog', { name: 'Changed meanwhile' });
    expect(await dialog.getByRole('textbox', { name: 'Yours', exact: true }).inputValue()).toBe('of b\n');
    expect(await dialog.getByRole('textbox', { name: 'On disk', exact: true }).inputValue()).toBe('of a\n');
    await b.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    expect([await text(b).inputValue(), await plan()]).toEqual(['of b\n', 'of a\n']);
    await save(b);
    await dialog.getByRole('button', { name: 'Keep mine' }).click();
    await saved(b);
    expect(await plan()).toBe('of b\n');
    await text(a).fill('of a again\n');
    await save(a);
    await a.getByRole('button', { name: 'Take theirs' }).click();
    expect([await text(a).inputValue(), await plan()]).toEqual(['of b\n', 'of b\n']);
    // Whoever looks elsewhere finds their words again.
    await text(a).fill('not saved');
    await a.getByRole('tab', { name: 'Tasks' }).click();
    await a.getByRole('tab', { name: 'Plan' }).click();
    expect(await text(a).inputValue()).toBe('not saved');
    await text(a).fill('of b\n');
  });
});

describeInChromium('a task', () => {
  it('is begun, followed and shown with its calls and its outcome', async () => {
    const page = await open('#/work/tasks');
    await start(page, `look around ${SCRIPT}`);
    await task(page, 'look around').getByText('Completed').waitFor();
    await task(page, 'look around').getByRole('link').first().click();
    const region = page.getByRole('region', { name: `look around ${SCRIPT}` });
    const call = region.getByRole('group', { name: 'find_nothing' });
    expect(await call.getAttribute('open')).toBe(null);
    await call.locator('summary').click();
    await call.getByText('"where"').waitFor();
    expect(await region.locator('strong').textContent()).toBe('Done');
    expect(await region.locator('script, img').count()).toBe(0);
    await page.reload();
    await region.getByText('took').waitFor();
  });

  it('is stopped, hears a message while it runs, and says why it failed', async () => {
    const page = await open('#/work/tasks');
    await start(page, 'wait for me, one');
    await task(page, 'one').getByText('Running').waitFor();
    await task(page, 'one').getByRole('link').first().click();
    await page.getByRole('textbox', { name: 'Message', exact: true }).fill('hurry');
    await page.getByRole('radio', { name: 'Right away' }).check();
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await page.getByText('It will be passed on.').waitFor();
    await task(page, 'one').getByRole('button', { name: 'Stop', exact: true }).click();
    await task(page, 'one').getByText('Stopped').waitFor();
    await eventually(
      async () => (await page.getByRole('button', { name: 'Stop', exact: true }).count()) === 0,
      'nothing is left to stop',
    );
    await start(page, 'fail at once');
    await task(page, 'fail at once').getByText('Failed').waitFor();
    await task(page, 'fail at once')
      .getByText(/refused/)
      .waitFor();
  });

  it('is begun once, though the answer was lost and the page was loaded anew', async () => {
    const page = await open('#/work/tasks');
    let lost = 0;
    await page.route('**/api/tasks', async (route) => {
      lost += 1;
      // A page that is loaded anew aborts its requests itself.
      await route
        .fetch()
        .then(() => route.abort())
        .catch(() => {});
    });
    await page.getByRole('textbox', { name: 'Goal', exact: true }).fill('once only');
    await page.getByRole('button', { name: 'Start', exact: true }).click();
    await page.getByText('The gateway is away').waitFor();
    await eventually(() => lost >= 2, 'two answers are lost');
    await page.reload();
    await page.unroute('**/api/tasks');
    expect(await page.getByRole('textbox', { name: 'Goal', exact: true }).inputValue()).toBe('once only');
    await page.getByRole('button', { name: 'Start', exact: true }).click();
    await page.getByText('Task added.').waitFor();
    expect((await allTasks()).filter(({ goal }) => goal === 'once only')).toHaveLength(1);
    await start(page, 'once only');
    await page.getByText('Task added.').waitFor();
    await eventually(
      async () => (await task(page, 'once only').count()) === 2,
      'given on purpose, it is another',
    );
  });

  it('that runs when the gateway dies is shown as interrupted when it is back, and can be given again', async () => {
    const page = await open('#/work/tasks');
    await start(page, 'wait for me, two');
    await task(page, 'two').getByText('Running').waitFor();
    await gateway.stop('SIGKILL');
    gateway = run(home);
    await gateway.url();
    await task(page, 'two').getByText('Interrupted').waitFor();
    await task(page, 'two').getByRole('link').first().click();
    await page.getByRole('button', { name: 'Use this goal again' }).click();
    expect(await page.getByRole('textbox', { name: 'Goal', exact: true }).inputValue()).toBe(
      'wait for me, two',
    );
    await page.getByRole('textbox', { name: 'Goal', exact: true }).fill('');
  });

  it('is read a page at a time', async () => {
    for (let n = 0; n < 40; n++) {
      await fetch(`${url}/api/tasks`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ goal: `many ${n}` }),
      });
    }
    const page = await open('#/work/tasks');
    await task(page, 'many 39').waitFor();
    expect(await tasks(page).getByRole('listitem').count()).toBe(30);
    await page.getByRole('button', { name: 'Older tasks' }).click();
    await task(page, 'many 0').first().waitFor();
    await start(page, 'the newest');
    expect(await tasks(page).getByRole('listitem').first().textContent()).toContain('the newest');
    await task(page, 'many 0').first().waitFor();
  });
});

describeInChromium('artifacts', () => {
  const list = (page: Page) => page.getByRole('list', { name: 'Artifacts', exact: true });
  const preview = (page: Page) => page.getByRole('region', { name: 'Preview', exact: true });
  const choose = (page: Page, name: string) => list(page).getByRole('link', { name, exact: true }).click();

  it('are looked at without becoming documents of the page, and taken along', async () => {
    const page = await open('#/work/tasks');
    await start(page, 'make files');
    await task(page, 'make files').getByText('Completed').waitFor();
    await page.getByRole('tab', { name: 'Artifacts' }).click();
    await choose(page, SCRIPT);
    const picture = preview(page).getByRole('img', { name: SCRIPT });
    await eventually(
      () => picture.evaluate((image) => 'naturalWidth' in image && image.naturalWidth === 40),
      'the picture is drawn',
    );
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      preview(page).getByRole('link', { name: 'Download' }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('picture.svg');
    expect(await readFile(await download.path(), 'utf8')).toBe(SVG);
    await choose(page, 'A page');
    await preview(page).getByText(SCRIPT).waitFor();
    await choose(page, 'Words');
    await preview(page).getByRole('heading', { name: 'Words', level: 3 }).waitFor();
    expect(await preview(page).getByRole('link').allInnerTexts()).toEqual(['Download']);
    await choose(page, 'code.py');
    await preview(page).locator('.code-keyword').first().waitFor();
    await page.reload();
    await preview(page).locator('.code-keyword').first().waitFor();
    expect(await page.locator('iframe, embed, object, svg script').count()).toBe(0);
  });

  it('of any kind and size say what they are; of a large text the beginning is fetched', async () => {
    const folder = join(home.folder, 'data/artifacts/by-hand');
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'paper.pdf'), PDF);
    await writeFile(join(folder, 'archive.zip'), Buffer.from([80, 75, 0, 1]));
    await writeFile(join(folder, 'binary.txt'), Buffer.from([65, 0, 66]));
    await writeFile(join(folder, 'long.log'), `${'a line of a log\n'.repeat(3_200_000)}`);
    await writeFile(join(folder, 'huge.png'), '');
    await truncate(join(folder, 'huge.png'), 50_000_000);
    const page = await open('#/work/artifacts');
    const bodies: number[] = [];
    page.on('requestfinished', async (request) => {
      if (request.url().includes('/api/artifacts/')) bodies.push((await request.sizes()).responseBodySize);
    });
    await choose(page, 'archive.zip');
    await preview(page).getByText('This kind of file cannot be shown here').waitFor();
    await preview(page).getByText('archive.zip · application/zip · 4 byte').waitFor();
    await choose(page, 'binary.txt');
    await preview(page).getByText('This kind of file cannot be shown here').waitFor();
    await choose(page, 'huge.png');
    await preview(page).getByText('too large to show').waitFor();
    await choose(page, 'long.log');
    await preview(page).getByText('Only the first 300 kB are shown').waitFor();
    expect((await preview(page).locator('pre').textContent())?.length).toBeLessThan(310_000);
    expect(Math.max(0, ...bodies)).toBeLessThan(5_000_000);
    await choose(page, 'paper.pdf');
    const frame = preview(page).locator('iframe');
    expect(await frame.getAttribute('src')).toMatch(/^blob:/);
    await eventually(
      () => page.frames().some((each) => each.url().startsWith('chrome-extension://')),
      'the browser shows the PDF',
    );
    await page.goto(`${url}/#/work/artifacts/by-hand/no-such`);
    await page.getByRole('alert').filter({ hasText: 'There is no such artifact.' }).waitFor();
  });
});

describeInChromium('on any screen nothing is in the way of anybody, in the light and in the dark, of', () => {
  beforeAll(() => putPlan(`# Garden ${'x'.repeat(200)}\n\n- [x] sow\n  - [ ] water ${'y'.repeat(300)}\n`));

  it.each([
    ['a plan', 'plan'],
    ['memory', 'memory'],
    ['tasks', 'tasks'],
    ['artifacts', 'artifacts'],
    ['a paper', 'artifacts/by-hand/paper'],
    ['a long text', 'artifacts/by-hand/long'],
    ['a task', 'tasks/ID'],
  ])('%s', async (_, place) => {
    const looked = (await allTasks()).find(({ goal }) => goal.startsWith('look around'));
    const page = await open(`#/work/${place.replace('ID', String(looked?.id))}`, {
      viewport: { width: 320, height: 700 },
    });
    await page.getByRole('tabpanel').locator('h2:visible, textarea:visible').first().waitFor();
    await page.waitForLoadState('networkidle');
    for (const width of [320, 1280]) {
      await page.setViewportSize({ width, height: 700 });
      expect(await page.evaluate(TOO_WIDE), `at ${width}`).toBe(0);
      expect(await seriousFaults(page), `at ${width}`).toEqual([]);
    }
  });
});
