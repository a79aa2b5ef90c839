/**
 * Part of `npm run bench`: the time to convert 100 kB of Markdown, as models write it, to messages for each platform:
 * parsed, split, and rendered in the platform's markup. `--quick` measures fewer times.
 */
import { cut } from '../src/channels/markdown/cut.js';
import { discordLength, discordText } from '../src/channels/markdown/discord.js';
import { parse } from '../src/channels/markdown/parse.js';
import { TABLE_WIDTH, whatsappText } from '../src/channels/markdown/whatsapp.js';
import { sendRequest } from '../src/channels/telegram/outbound.js';
import { terminalText } from '../src/channels/terminal/prompt.js';
import type { Part } from '../src/core/channel.js';
import { median, quantile, type Row } from './figures.js';
import { readOptions } from './options.js';
import { resultsOf } from './results.js';

const { table } = resultsOf('markdown');
const { quick } = readOptions();
const RUNS = quick ? 40 : 200;
const BYTES = 100_000;
const AIM_MS = 20;

const ANNA = { address: '100001', threadId: null, kind: 'direct' as const };

interface Way {
  read: (source: string) => Part;
  /** Returns the number of messages, so that the call is not optimised away. */
  write: (styled: Part) => number;
}

const whatsappLength = (part: Part) => whatsappText(part).length;
const PLATFORMS: Record<string, Way> = {
  Telegram: {
    read: parse,
    write: (styled) =>
      cut(styled, { limit: 4096, maxMarks: 100 }).map((part) => sendRequest(ANNA, part, false)).length,
  },
  Discord: {
    read: parse,
    write: (styled) => cut(styled, { limit: 2000, measure: discordLength }).map(discordText).length,
  },
  WhatsApp: {
    read: (source) => parse(source, { tableWidth: TABLE_WIDTH }),
    write: (styled) => cut(styled, { limit: 4096, measure: whatsappLength }).map(whatsappText).length,
  },
  'the terminal': { read: parse, write: (styled) => [styled].map(terminalText).length },
};

/** A long answer: mostly prose, with an occasional list, code, quote and table. */
function answer(n: number): string {
  const prose = [
    `The **short answer** is that it depends on what you measure: in run ${n} the first request took longer than all the others together, and nobody who looks at an average alone would have seen it. That is not a fault of the tool but of the question, and it is worth a paragraph of its own before any numbers are compared.`,
    `If you look at [the report](https://example.org/report/${n}?page=1&full=yes), you will find that most of the time goes into waiting. The process itself is idle; \`strace -c\` shows a handful of calls, and the *interesting* ones are at the very end. I would begin there, with the settings left as they are, and change one thing at a time.`,
    `There are two ways to go on from here. Either you accept the delay, which is about ${n} ms and will not be noticed by anybody who reads the answer on a telephone, or you keep the connection open and pay for it with memory (some 40 kB each). For a household the first is better, for a school the second.`,
    `Whatever you choose, write it down. In a month you will not remember why the limit is ${n * 8}, and the next person will take it for a mistake; a sentence in the configuration is enough. See also https://example.org/notes/${n} for how others did it.`,
  ];
  const list = `- **Latency**: what one person waits for
  - the median says how it mostly is
  - the 95th percentile says how it is on a bad day
- **Throughput**: what all of them get done together
- **Memory**, which is only a problem when there is none left`;
  const steps = `1. Start it with \`npm start -- --log-level debug\` and wait until it says that it is ready.
2. Send ten messages, one after the other, and then ten at once.
3. Compare the two; if the second is more than twice the first, something is waiting for something.`;
  const code = `\`\`\`ts
export async function measure(run: () => Promise<void>, times = ${n}): Promise<number[]> {
  const taken: number[] = [];
  for (let index = 0; index < times; index++) {
    const startedAt = performance.now(); // *not* Date.now(): it can go backwards
    await run();
    taken.push(performance.now() - startedAt);
  }
  return taken.toSorted((a, b) => a - b);
}
\`\`\``;
  const figures = `| what | before | after |
|:-----|-------:|------:|
| first request | ${n + 120} ms | ${n + 12} ms |
| median | 14 ms | 13 ms |
| memory | 81 MB | 84 MB |`;
  const said = `> Premature optimisation is what it is called when somebody else does it,
> and **good sense** when one does it oneself.`;
  const blocks = [
    `## ${n}. What the figures say`,
    prose[0],
    list,
    prose[1],
    code,
    prose[2],
    figures,
    steps,
    said,
  ];
  return `${[...blocks, prose[3]].join('\n\n')}\n\n`;
}

let source = '';
for (let n = 1; source.length < BYTES; n++) source += answer(n);
source = source.slice(0, BYTES);

const rows: Row[] = [];
for (const [name, { read, write }] of Object.entries(PLATFORMS)) {
  const reading: number[] = [];
  const whole: number[] = [];
  let count = 0;
  for (let run = -RUNS / 4; run < RUNS; run++) {
    const startedAt = performance.now();
    const styled = read(source);
    const readAt = performance.now();
    count = write(styled);
    const writtenAt = performance.now();
    // Warm-up: the first runs compile the code.
    if (run < 0) continue;
    reading.push(readAt - startedAt);
    whole.push(writtenAt - startedAt);
  }
  const what = `for ${name}${count > 1 ? `, ${count} messages` : ''}`;
  rows.push({ what, values: [median(whole), quantile(whole, 0.95), median(reading)], unit: 'ms' });
}
console.log(`${BYTES / 1000} kB of Markdown (aim: under ${AIM_MS} ms from Markdown to messages)\n`);
console.log(`${table(['from Markdown to messages', '95 %', 'of it, parsing'], rows)}\n`);
