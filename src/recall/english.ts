/** A rough stemmer for English: "painted" and "painter" are one term. A wrong stem is harmless if always the same. Pure. */

/** Too frequent to distinguish messages; includes the rest of words split at an apostrophe. */
const STOP_WORDS = new Set(
  `a about after all also am an and any are as at be because been before being but by can could did do does doing
  done for from had has have having he her here hers him his how i if in into is it its itself just like ll m may me
  might more most much must my no nor not now of off on once only or other our ours out over own re s same she should
  so some such t than that the their theirs them then there these they this those through to too under until up us ve
  very was we were what when where which while who whom whose why will with would you your yours d don didn doesn isn
  aren wasn weren won shouldn wouldn couldn hasn haven hadn ain gonna wanna got get yes yeah ok okay oh hey hi hello
  wow thanks thank please really`.split(/\s+/),
);

const IRREGULAR = table(`
  go went gone goes|buy bought|bring brought|think thought|teach taught|catch caught|fight fought|seek sought
  see saw seen|take took taken|give gave given|write wrote written|ride rode ridden|drive drove driven
  eat ate eaten|speak spoke spoken|break broke broken|choose chose chosen|steal stole stolen|wake woke woken
  begin began begun|drink drank drunk|sing sang sung|swim swam swum|run ran|come came|become became
  make made|meet met|feel felt|keep kept|sleep slept|leave left|lose lost|send sent|spend spent|build built
  tell told|sell sold|hold held|hear heard|find found|stand stood|understand understood|win won|sit sat
  say said|pay paid|lead led|read|feed fed|know knew known|grow grew grown|throw threw thrown|fly flew flown
  draw drew drawn|wear wore worn|tear tore torn|fall fell fallen|forget forgot forgotten|hide hid hidden
  bite bit bitten|shake shook shaken|rise rose risen|get got gotten|mean meant|deal dealt|dream dreamt
  child children|person people persons|man men|woman women|foot feet|tooth teeth|mouse mice|wife wives
  life lives|knife knives|leaf leaves|half halves|shelf shelves|self selves|die died dying dies|lie lied lying
  tie tied tying ties|good better best|bad worse worst`);

/** Synonyms people use when they ask about something later. Deliberately few and undisputed. */
const SAME = table(`
  mother mom mum mommy|father dad daddy|child kid|picture photo pic photograph image|movie film|bike bicycle
  television tv|grandmother grandma granny|grandfather grandpa|begin start|buy purchase|job work occupation career
  sick ill|vacation holiday trip travel journey|car automobile vehicle|wedding marriage marry|doctor physician
  phone telephone|apartment flat|shop store|sofa couch|fall autumn|happy glad|big large|often frequent
  friend buddy pal|dog puppy pup doggy|cat kitten kitty|author writer|book novel|gift present
  show display|help assist aid|hobby pastime|exam test|university college|company firm business`);

function table(rows: string): Map<string, string> {
  const forms = new Map<string, string>();
  for (const row of rows.split(/[|\n]/)) {
    const [word, ...others] = row.trim().split(' ');
    if (word) for (const other of others) forms.set(other, word);
  }
  return forms;
}

const VOWEL = /[aeiouy]/;

export function isStopWord(word: string): boolean {
  return STOP_WORDS.has(word);
}

/** `word`: lower case, a to z. */
export function stem(word: string): string {
  const plain = IRREGULAR.get(word) ?? word;
  const singular = withoutPlural(plain);
  const known = IRREGULAR.get(singular) ?? singular;
  const base = withoutTense(SAME.get(known) ?? known);
  return ending(withoutSuffix(SAME.get(base) ?? SAME.get(`${base}e`) ?? base));
}

function withoutPlural(word: string): string {
  if (word.length < 4 || !word.endsWith('s') || /(?:ss|us|is)$/.test(word)) return word;
  if (word.endsWith('ies')) return word.length > 4 ? `${word.slice(0, -3)}y` : word.slice(0, -1);
  return /(?:sh|ch|x|z|ss)es$/.test(word) ? word.slice(0, -2) : word.slice(0, -1);
}

function withoutTense(word: string): string {
  const cut = /^(.{2,}?)(?:ing|ed)$/.exec(word)?.[1];
  if (cut === undefined || !VOWEL.test(cut)) return word;
  if (word.endsWith('eed')) return word;
  return withoutDouble(cut);
}

function withoutDouble(word: string): string {
  return /([bdgkmnprt])\1$/.test(word) ? word.slice(0, -1) : word;
}

/** At most one is removed, and only if enough is left to tell words apart. */
const SUFFIX =
  /^(.{3,})(?:ational|fulness|ousness|iveness|ement|ments?|ness|ances?|ences?|able|ible|ists?|isms?|fully|ful|less|ity|ally|ly|al|ers?|ors?|est|ship|ion)$/;

function withoutSuffix(word: string): string {
  if (word.length < 6) return word;
  const cut = SUFFIX.exec(word);
  if (cut?.[1] === undefined) return word;
  if (word.endsWith('ion') && !/[st]$/.test(cut[1])) return word;
  return withoutDouble(cut[1]);
}

function ending(word: string): string {
  if (word.length > 3 && word.endsWith('e')) return word.slice(0, -1);
  return word.length > 2 && /[^aeiou]y$/.test(word) ? `${word.slice(0, -1)}i` : word;
}
