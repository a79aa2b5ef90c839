/** What somebody wants the offline model to do with its memory, by the wording. English, and the commonest of some others. */

export type Intent = { kind: 'save'; facts: string[] } | { kind: 'recall' } | { kind: 'talk' };

const RECALL = [
  /\bwhat (do|can|did|have) you (still )?(remember|know about|know of|saved|stored|remembered|have in)/i,
  /\b(do|did) you (still )?remember\b/i,
  /\bremember (anything|what|who|where|which)\b/i,
  /\bwhat you (still )?(remember|know about me)\b/i,
  /\bwhat('|’| i)s in (your|my) memory\b/i,
  /\bshow (me )?(your|my) memory\b/i,
  /\bwas (weißt|weisst) du (noch )?(über|von) mi/i,
  /\bwas hast du dir gemerkt\b/i,
  /\bworan erinnerst du dich\b/i,
  /\bque sais-tu (de|sur) moi\b|\bde quoi te souviens-tu\b/i,
  /\bqué (recuerdas|sabes de mí)/i,
  /\b(che )?cosa (ricordi|sai di me)\b/i,
  /\bo que (você )?(lembra|sabe (de|sobre) mim)\b/i,
  /\bwat (weet je (nog )?(van|over) mij|herinner je je)\b/i,
  /你(还)?(记得|知道我)(些|的)?什么/,
];

/** The start of a clause, so that "I remember that day" is no such request. */
const START = String.raw`(?:^|[.!?,;:]\s*|\b(?:please|can you|could you|would you|will you|want you to|also|and)\s+)`;

const SAVE = [
  String.raw`(?:remember|(?:don['’]?t|do not|never) forget)(?:\s+that\b|\s*:)?[\s,:]+(.+)`,
  String.raw`(?:keep in mind|(?:make a )?note)(?:\s+that\b|\s*:)[\s,:]*(.+)`,
  String.raw`(?:bitte )?(?:merk(?:e)? dir|vergiss nicht|denk(?:e)? daran)(?: bitte)?[\s,:]+(?:dass|daß)?\s*(.+)`,
  String.raw`(?:souviens-toi|rappelle-toi|retiens|n['’]oublie pas)(?:\s+bien)?\s+(?:que\s+|qu['’])(.+)`,
  String.raw`(?:recuerda|acuérdate de|no olvides)\s+que\s+(.+)`,
  String.raw`(?:ricorda(?:ti)?|non dimenticare)\s+che\s+(.+)`,
  String.raw`(?:lembr[ea](?:-te|-se)?|não (?:te |se )?esqueç[ao]s?)\s+(?:de\s+)?que\s+(.+)`,
  String.raw`(?:onthoud|vergeet niet)\s+dat\s+(.+)`,
].map((wording) => new RegExp(START + wording, 'im'));

const SAVE_CHINESE = /(?:^|[，。！？,.!?\s])请?(?:你)?(?:记住|别忘了)[，：,:\s]*(.+)/m;

/** Pure. Asking wins over telling: "do you remember that I like tea?" is a question. */
export function intentOf(said: string[]): Intent {
  const facts: string[] = [];
  for (const text of said) {
    if (RECALL.some((wording) => wording.test(text))) return { kind: 'recall' };
    const fact = factIn(text);
    if (fact !== null && !facts.includes(fact)) facts.push(fact);
  }
  return facts.length > 0 ? { kind: 'save', facts } : { kind: 'talk' };
}

/** What is to be kept, on one line; null when nothing is. */
function factIn(text: string): string | null {
  for (const wording of [...SAVE, SAVE_CHINESE]) {
    const fact = wording.exec(text)?.[1]?.replace(/\s+/g, ' ').trim();
    if (fact) return fact;
  }
  return null;
}
