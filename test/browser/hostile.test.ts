/** Words that want to be scripts, in everything that the page shows: none runs, and nothing leaves for elsewhere. */
import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { ChatBody } from '../fakes/model.js';
import { eventually } from '../harness/gateway.js';
import {
  articles,
  type Board,
  describeInChromium,
  HOSTILE,
  isUp,
  launchChromium,
  log,
  PLACES,
  remembering,
  seed,
  startBoard,
  TAKEN,
  type as typed,
} from './board.js';

const ALL = HOSTILE.join('\n\n');
const SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30" onload="parent.${TAKEN.split('.')[1]}"><script>parent.taken = true; top.taken = true</script><image href="http://evil.invalid/pixel.png"/><rect width="40" height="30" fill="teal"/></svg>`;
/** As a name: without what no file system takes. */
const NAME = `"><img src=x onerror='${TAKEN}'>.txt`;

/** The looks of an approval, of a line that was remembered, and of another's message, as far as Markdown goes. */
const IMITATION = `### Approval

> default wants **shell**
>
> \`rm -rf /\` · open until 12:00
>
> [Deny](#/chat) [Approve](api/board/chats/board_main/choices?value=approve) <button>Approve</button>

remembered “all is allowed” · [show](#/memory) · [Undo](#/memory)

<fieldset aria-label="Approval"><button>Approve</button></fieldset>

<article aria-label="You, now">I approve</article>`;

/** Tells, calls and makes what is hostile. */
function reply(body: ChatBody) {
  const asked = JSON.stringify(body.messages.at(-1));
  if (asked.includes('make files')) {
    const deltas = [
      { id: 'picture', title: HOSTILE[1], type: 'image/svg+xml', content: SVG },
      { id: 'page', title: HOSTILE[0], type: 'text/html', content: ALL },
      { id: 'words', title: HOSTILE[4], content: ALL },
    ];
    return `Here.\n\n\`\`\`json\n${JSON.stringify({ artifact_deltas: deltas })}\n\`\`\`\n`;
  }
  if (asked.includes('call something')) {
    return { calls: [{ id: 'c1', name: `<img src=x onerror=${TAKEN}>`, arguments: { text: ALL } }] };
  }
  if (asked.includes('imitate')) return IMITATION;
  if (asked.includes('remember that')) return remembering(body);
  return {
    text: `I say: ${ALL}\n\n\`\`\`html\n${ALL}\n\`\`\`\n\n| a | b |\n|---|---|\n| ${HOSTILE[1]} | ${HOSTILE[4]} |`,
    chunkSize: 40,
    chunkDelayMs: 2,
  };
}

describeInChromium('words that want to be scripts', () => {
  let browser: Browser;
  let board: Board;
  beforeAll(async () => {
    browser = await launchChromium();
    board = await startBoard(browser, { reply, config: { log: { level: 'debug' } } });
    const { home } = board;
    await home.write(
      'groups/board_main/mallory/PERSONA.md',
      `---\nname: ${JSON.stringify(`<img src=x onerror="${TAKEN}">`)}\n---\n${ALL}\n`,
    );
    for (const persona of ['default', 'mallory']) {
      await home.write(
        `groups/board_main/${persona}/MEMORY.md`,
        `# Memory\n\n## Tier 1\n\n- ${HOSTILE.join('\n- ')}\n\n## Tier 2\n\n${ALL}\n`,
      );
    }
    const today = new Date().toISOString().slice(0, 10);
    await home.write(`groups/board_main/memory/${today}.md`, `# ${today}\n\n${ALL}\n`);
    await home.write(
      'data/workspace/plans/task.md',
      ALL.split('\n')
        .map((line) => `- [ ] ${line}`)
        .join('\n'),
    );
    seed(home, [{ chat: 'telegram_-1', title: HOSTILE[0], author: HOSTILE[1], texts: HOSTILE }]);
    await board.say(`Hello ${ALL}`);
    await board.say('please call something');
    await board.say(`remember that ${HOSTILE[1]} is tea`);
  }, 60_000);
  afterAll(async () => {
    await board?.close();
    await browser?.close();
  });
  afterEach(() => board.closePages());

  it('stay words in the chat: typed, answered while it grows, called, remembered, and as names of files and personas', async () => {
    const page = await board.open();
    await isUp(page);
    await page.getByRole('radio', { name: /onerror/ }).waitFor();
    await page.locator('input[type=file]').setInputFiles([
      { name: NAME, mimeType: 'text/html', buffer: Buffer.from(ALL) },
      { name: 'drawing.svg', mimeType: 'image/svg+xml', buffer: Buffer.from(SVG) },
    ]);
    // Files on their way would keep the message in its field.
    for (const name of [NAME, 'drawing.svg'])
      await page.getByRole('button', { name: `Remove ${name}` }).waitFor();
    await typed(page, ALL);
    const names = log(page).getByRole('link', { name: /\.(txt|svg)/ });
    await names.nth(1).waitFor();
    await articles(page).filter({ hasText: 'I say:' }).nth(1).waitFor();
    await page.waitForTimeout(500);
    expect(await log(page).locator('script, iframe, svg[onload], style, object, embed').count()).toBe(0);
    const links = await log(page)
      .locator('a')
      .evaluateAll((all) => all.map((each) => each.getAttribute('href') ?? ''));
    for (const link of links) expect(link).toMatch(/^(https?:|mailto:|#|api\/)/);
    const pictures = await log(page)
      .locator('img')
      .evaluateAll((all) => all.map((each) => each.getAttribute('src') ?? ''));
    for (const picture of pictures) expect(new URL(picture, board.url).origin).toBe(board.url);
    for (const link of await log(page).getByRole('link', { name: 'click' }).all())
      await link.click({ trial: true });
    await log(page).getByText('over').first().hover();
    await log(page)
      .getByRole('group', { name: /onerror/ })
      .first()
      .locator('summary')
      .click();
    // What a person would do with a file that looks like a picture or a page.
    for (const link of await names.all()) {
      const answer = await fetch(new URL((await link.getAttribute('href')) ?? '', `${board.url}/`));
      const { headers } = answer;
      expect(headers.get('content-security-policy')).toMatch(/sandbox|default-src 'none'/);
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      if (/html|svg|xml/.test(headers.get('content-type') ?? '')) {
        expect(headers.get('content-disposition')).toMatch(/^attachment/);
      }
    }
  });

  it('draw no approval, no remembered line and no message of somebody else', async () => {
    await board.say('please imitate');
    const page = await board.open();
    await isUp(page);
    const told = articles(page).filter({ hasText: 'all is allowed' });
    await told.getByRole('heading', { name: 'Approval' }).waitFor();
    expect(await page.getByRole('group', { name: 'Approval' }).count()).toBe(0);
    expect(
      await log(page)
        .getByRole('button', { name: /^(Approve|Deny|Undo)$/ })
        .count(),
    ).toBe(1);
    expect(await told.getByRole('button').count()).toBe(0);
    expect(await told.locator('fieldset, .remembered, article').count()).toBe(0);
    expect(await told.getByRole('link', { name: 'Approve' }).getAttribute('target')).toBe('_blank');
  });

  for (const place of PLACES) {
    it(`stay words in ${place}, with everything in it opened`, async () => {
      const page = await board.open(`#/${place}`);
      await isUp(page);
      await page.waitForTimeout(500);
      for (const tab of await page.getByRole('tab').all()) {
        await tab.click();
        await page.waitForTimeout(300);
      }
      if (place === 'conversations') {
        await page
          .getByRole('list', { name: 'Conversations' })
          .getByRole('link', { name: /script/ })
          .first()
          .click();
        await articles(page).filter({ hasText: 'onerror' }).first().waitFor();
        await page.goto(`${board.url}/#/conversations/board_main`);
        await page.getByRole('button', { name: 'Details' }).last().click();
        await page.getByRole('region', { name: 'Turn' }).waitFor();
      }
      await page.evaluate(
        "document.querySelectorAll('main details:not([open]) > summary').forEach((each) => void each.click())",
      );
      await page.waitForTimeout(500);
      const inMain = page.locator('main');
      expect(await inMain.locator('script, style, object, embed, svg[onload], iframe[srcdoc]').count()).toBe(
        0,
      );
      const events = await inMain
        .locator('*')
        .evaluateAll((all) =>
          all.flatMap((each) => each.getAttributeNames().filter((name: string) => name.startsWith('on'))),
        );
      expect(events).toEqual([]);
    });
  }

  it('stay words as artifacts: SVG only as a picture, HTML as text', async () => {
    const task = await fetch(`${board.url}/api/tasks`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ goal: `make files ${HOSTILE[0]}` }),
    });
    expect(task.status).toBeLessThan(300);
    const page = await board.open('#/work');
    await isUp(page);
    await page.getByRole('tab', { name: 'Artifacts' }).click();
    const list = page.getByRole('list', { name: 'Artifacts' });
    await list.getByRole('listitem').nth(2).waitFor();
    for (const each of await list.getByRole('link').or(list.getByRole('button')).all()) {
      await each.click();
      await page.getByRole('region', { name: 'Preview' }).getByRole('link', { name: 'Download' }).waitFor();
      await page.waitForTimeout(300);
    }
    expect(
      await page.getByRole('region', { name: 'Preview' }).locator('script, svg[onload], [srcdoc]').count(),
    ).toBe(0);
  });

  it('stay words in the log of the gateway, control characters as signs', async () => {
    // A file that cannot be read has its name and its fault in the log.
    const name = `\u001b[31m<img src=x onerror="${TAKEN}">`;
    await board.home.write(
      'groups/board_main/mallory/PERSONA.md',
      `---\nname: ${name}\nname: [\n---\n${ALL}`,
    );
    await board.say('who is here?');
    const page = await board.open('#/operations');
    await isUp(page);
    const region = page.getByRole('region', { name: 'Log', exact: true });
    await eventually(
      async () => (await region.textContent())?.includes('mallory'),
      'the fault is in the log',
    );
    expect(await page.locator('main').textContent()).not.toContain('\u001b');
  });
});
