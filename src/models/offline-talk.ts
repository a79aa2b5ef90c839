/** Small talk of the offline model: short, and honest about being a handful of rules. */

const HELP =
  'Tell me "remember that I prefer tea" and I write it into my memory; ask "what do you remember?" and I read ' +
  'it to you. /help lists the commands of this chat. For real conversation, connect a real model.';

/** The first that fits answers. Shorter and more particular ones stand first. */
const ANSWERS: { to: RegExp; reply: string }[] = [
  { to: /^(?:[\p{Emoji_Presentation}\p{Extended_Pictographic}\s]|\u200d|\ufe0f)+$/u, reply: '🙂' },
  {
    to: /\b(who|what) are you\b|\bare you (a |an )?(bot|ai|human|real|person|machine|robot)\b|\bwhich model\b/i,
    reply: 'I am the built-in offline model: a small set of rules, no language model and no person.',
  },
  { to: /\bhelp\b|\bwhat can you do\b|\bhow does (this|it) work\b|^\s*\?+\s*$/i, reply: HELP },
  { to: /\bhow are you\b|\bhow('|’)?s it going\b/i, reply: 'All my rules are in order, thank you. And you?' },
  { to: /\bthank(s| you)\b|\bthx\b|\bdanke\b|\bmerci\b|\bgracias\b|\bgrazie\b/i, reply: 'You are welcome.' },
  {
    to: /^\W*(good ?)?(bye|night|goodbye|see you|ciao|tschüss|au revoir|adiós)\b/i,
    reply: 'Goodbye! What you asked me to remember stays in memory.',
  },
  {
    to: /^\W*(hi|hello|hey|hiya|howdy|hallo|moin|salut|bonjour|hola|ciao|olá|good (morning|afternoon|evening))\b|^(你好|こんにちは|привет)/iu,
    reply: 'Hello! Ask me for help to see what I can do.',
  },
  {
    to: /^\W*(yes|no|ok|okay|yep|nope|sure|fine|good|great|nice|cool|well)\W*$/i,
    reply: 'Noted. Ask me for help to see what I can do.',
  },
];

const QUOTED = 160;

/** Pure. */
export function smallTalk(said: string): string {
  const known = ANSWERS.find((answer) => answer.to.test(said));
  if (known !== undefined) return known.reply;
  if (said === '') return 'That was an empty message, so I have nothing to answer.';
  const question = said.endsWith('?') ? 'I have no answer to that' : 'That goes beyond my few rules';
  return `You said: "${quoted(said)}". ${question}; ask me for help to see what I can do.`;
}

/** One line, cut between characters. */
function quoted(said: string): string {
  const line = said
    .slice(0, QUOTED * 4)
    .replace(/\s+/g, ' ')
    .trim();
  const characters = [...line];
  return characters.length <= QUOTED ? line : `${characters.slice(0, QUOTED).join('')}…`;
}
