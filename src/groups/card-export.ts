/** A persona becomes a card: the one it came from, in which only edited texts differ, or a new one. */
import { extname, join } from 'node:path';
import type { Card, Cards, CardTexts, WriteForm } from '../core/cards.js';
import { readIfThere } from '../core/file-access.js';
import { dataOf, LARGE } from '../core/file-text.js';
import type { ChatId } from '../core/ids.js';
import type { Persona } from '../core/persona.js';
import { cardPath, hasEntries, isSame, LOREBOOK, portraitOf, type Shelf, withFewer } from './card-import.js';
import { onDisk, personaFolder, slug } from './paths.js';
import { cardPersonaFile, cardTextsOf, readPersonaFile } from './persona-file.js';
import { PORTRAIT } from './personas.js';

/** Beside PERSONA.md, or in the library. */
async function fileOfPersona(
  { groupsDir, library }: Shelf,
  chatId: ChatId,
  { id, from }: Persona,
  name: string,
) {
  const own = await readIfThere(join(personaFolder(groupsDir, chatId, id), name));
  return own ?? readIfThere(join(onDisk(library, from ?? id), name));
}

export async function exportPersona(
  shelf: Shelf,
  chatId: ChatId,
  name: string,
  as: WriteForm | null,
): ReturnType<Cards['export']> {
  const { format, reader } = shelf;
  const persona = await reader.find(chatId, name);
  if (persona === null) return null;
  const { id, from } = persona;
  const path = persona.card === null ? null : cardPath(shelf, chatId, id, from, persona.card);
  const original = path === null ? null : await readIfThere(path);
  const read = original === null ? null : format.read(original);
  const card = read?.kind === 'card' ? read.card : null;
  const { greeting, greetings, groupGreetings, talkativeness, character, parts } = persona;
  const is: CardTexts = {
    ...{ name: persona.name, nickname: card?.texts.nickname ?? '', description: character, ...parts },
    ...{ greeting: greeting ?? '', greetings, groupGreetings, talkativeness },
  };
  const yaml = await fileOfPersona(shelf, chatId, persona, LOREBOOK);
  const book = yaml === null ? null : bookIn(yaml.toString('utf8'));
  const png = await fileOfPersona(shelf, chatId, persona, PORTRAIT);
  const brought = card?.portrait ? await portraitOf(shelf, { ...card, leftOut: [] }) : null;
  const wasBook = card !== null && hasEntries(card.book) ? card.book : null;
  const texts = card === null ? is : editsOf(card, is);
  const isNewBook = !isSame(wasBook, book);
  const portrait = png && { png, isEdited: brought === null || !brought.equals(png) };
  const isEdited = Object.keys(texts).length > 0 || isNewBook || portrait?.isEdited;
  const fileName = (form: string) => `${slug(persona.name) || id}.${form}`;
  // Some forms are read, but not written.
  if (original !== null && card !== null && as === null && !isEdited)
    return { file: original, fileName: fileName(extname(persona.card ?? '').slice(1)) };
  const { file, form } = format.write({
    original: card === null ? null : original,
    changes: { texts, ...(isNewBook && { book }) },
    ...{ texts: is, book, portrait, as },
  });
  return { file, fileName: fileName(form) };
}

function bookIn(text: string): unknown {
  return text.trimStart().startsWith('{')
    ? JSON.parse(text)
    : JSON.parse(JSON.stringify(dataOf(text, LARGE)));
}

/** Texts that are not what the import of the card writes. The name of a persona is not its card's. */
function editsOf(card: Card, is: CardTexts): Partial<CardTexts> {
  const imported = readPersonaFile(cardPersonaFile(withFewer(card.texts, []), {}));
  const was = cardTextsOf(imported, is.name);
  const names = (Object.keys(was) as (keyof CardTexts)[]).filter(
    (name) => name !== 'name' && name !== 'nickname',
  );
  return Object.fromEntries(
    names.filter((name) => !isSame(was[name], is[name])).map((name) => [name, is[name]]),
  );
}
