/** Another persona in the chat of the page. */
import { useId, useRef } from 'preact/hooks';
import { useTexts } from '../app.ts';
import { createPersona } from '../chat/requests.ts';
import { filled } from '../texts/texts.ts';
import { Told, useSteps } from './outcome.tsx';

const CHAT = 'board_main';

export function PersonaForm() {
  const { setup: texts } = useTexts();
  const id = useId();
  const form = useRef<HTMLFormElement>(null);
  const { outcome, step } = useSteps();

  async function create(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    const fields = new FormData(event.currentTarget as HTMLFormElement);
    const name = String(fields.get('name') ?? '').trim();
    const character = String(fields.get('character') ?? '').trim();
    await step(texts.saving, async () => {
      await createPersona(CHAT, name, character);
      form.current?.reset();
      return { kind: 'done', says: filled(texts.created, { name }) };
    });
  }

  return (
    <section class="card" aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>{texts.persona}</h2>
      <p class="soft small">{texts.personaHint}</p>
      <form ref={form} class="stack" onSubmit={create}>
        <label>
          {texts.name}
          <input name="name" required maxLength={60} autocomplete="off" />
        </label>
        <label>
          {texts.character}
          <textarea name="character" rows={3} aria-describedby={`${id}-character`} />
        </label>
        <p id={`${id}-character`} class="hint">
          {texts.characterHint}
        </p>
        <div class="row">
          <button type="submit" class="primary wide">
            {texts.create}
          </button>
        </div>
      </form>
      <Told outcome={outcome} />
    </section>
  );
}
