/** The fields of a new persona, and the request that creates it from them. */
import { ask } from '../api.ts';
import { useTexts } from '../app.ts';

export function PersonaFields() {
  const { kit } = useTexts();
  return (
    <>
      <label>
        {kit.name}
        <input name="name" required maxLength={60} autocomplete="off" placeholder={kit.nameExample} />
      </label>
      <label>
        {kit.character}
        <textarea name="character" rows={4} placeholder={kit.characterExample} />
      </label>
    </>
  );
}

/** Resolves to its name. */
export async function createPersona(chat: string, form: HTMLFormElement): Promise<string> {
  const fields = new FormData(form);
  const name = String(fields.get('name')).trim();
  const character = String(fields.get('character')).trim();
  await ask(`api/board/chats/${encodeURIComponent(chat)}/personas`, {
    method: 'POST',
    json: { name, character },
  });
  return name;
}
