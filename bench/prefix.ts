/**
 * `npm run bench:prefix`: the tokens that a prompt-caching model server must process anew in a conversation of sixty
 * turns, in which the persona writes a memory tier every third turn and a line of the daily log every fifth. The server
 * caches only the last request, compares from the first character, and counts four characters as a token. `--dist DIR`
 * measures another checkout's gateway.
 */

import { type ChatBody, startFakeModel } from '../test/fakes/model.js';
import { type Cacheable, type Shared, sharedPrefix } from '../test/fakes/shared-prefix.js';
import { makeHome, run } from '../test/harness/gateway.js';
import { readOptions } from './options.js';

const TURNS = 60;
const CHARS_PER_TOKEN = 4;
/** As a share of the price of an uncached token. */
const CACHED_PRICE = 0.1;
const WORDS =
  'the shed by the old pear tree needs a new roof before the rain comes and somebody ought to count the nails';

const { main } = readOptions();
const requests: Cacheable[] = [];
const model = await startFakeModel({ reply: answer });
const home = await makeHome({
  data_dir: './data',
  groups_dir: './groups',
  timezone: 'UTC',
  model: { base_url: model.url, api_key: 'k', name: 'm' },
});
await home.write('groups/AGENTS.md', 'Be kind. Say what you know and what you guess.\n');
const tier = (n: number, about: string) =>
  Array.from({ length: n }, (_, line) => `- ${about} ${line}: ${WORDS}`).join('\n');
await home.write(
  'groups/terminal_local/default/MEMORY.md',
  `# Memory\n\n## Tier 1 — Long term\n\n${tier(20, 'fact')}\n\n## Tier 2 — Mid term\n\n${tier(15, 'project')}\n\n## Tier 3 — Short term\n`,
);

const gateway = run(home, ['chat'], {}, main);
for (let n = 1; n <= TURNS; n++) gateway.write(`turn ${n}: ${WORDS}, ${WORDS}?\n`);
gateway.endInput();
const code = await gateway.exited;
await model.close();
await home.remove();
if (code !== 0) throw new Error(`the gateway ended with ${code}: ${gateway.err().slice(-2_000)}`);

const shares: Shared[] = requests.map((request, n) => sharedPrefix(requests[n - 1], request));
const total = shares.reduce((sum, each) => sum + each.total, 0);
const shared = shares.reduce((sum, each) => sum + each.shared, 0);
const tokens = (chars: number) => Math.round(chars / CHARS_PER_TOKEN).toLocaleString('en');
const percent = (share: number) => `${(100 * share).toFixed(1)} %`;
const afterwards = shares.slice(1).map((each) => each.shared / each.total);
console.log(`${TURNS} turns, ${requests.length} requests
input in all            ${tokens(total)} tokens
shared prefix           ${percent(shared / total)} of it; least of one request ${percent(Math.min(...afterwards))}
read anew               ${tokens(total - shared)} tokens
billed, cached at ${CACHED_PRICE}   ${tokens(total - shared + CACHED_PRICE * shared)} tokens
last request            ${tokens(shares.at(-1)?.total ?? 0)} tokens`);

function answer(body: ChatBody) {
  const { messages, tools = [] } = body;
  requests.push({ tools, messages });
  const last = messages.at(-1);
  if (last?.role === 'tool') return `Done. ${WORDS}.`;
  const n = Number(/turn (\d+):[^<]*<\/user_message>\s*$/.exec(last?.content ?? '')?.[1] ?? 0);
  if (n % 3 === 0) {
    const content = tier(15, `project after turn ${n}`);
    return { calls: [{ name: 'write_tiered_memory', arguments: { tier: 2, content } }] };
  }
  if (n % 5 === 0) {
    const content = `in turn ${n}: ${WORDS}`;
    return { calls: [{ name: 'write_memory', arguments: { scope: 'chat_daily', content } }] };
  }
  return `I see. ${WORDS}, ${WORDS}.`;
}
