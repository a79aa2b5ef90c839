/** Another persona in the chat of the page. */
import { useId } from 'preact/hooks';
import { useTexts } from '../app.ts';
import { MAIN_CHAT } from '../kit/chats.ts';
import { createPersona, PersonaFields } from '../kit/persona-fields.tsx';
import { filled } from '../texts/texts.ts';
import { Told, useSteps } from './outcome.tsx';

export function PersonaForm() {
  const { setup: texts, kit } = useTexts();
  const id = useId();
  const { outcome, step } = useSteps();

  async function create(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    await step(texts.saving, async () => {
      const name = await createPersona(MAIN_CHAT, form);
      form.reset();
      return { kind: 'done', says: filled(texts.created, { name }) };
    });
  }

  return (
    <section class="card" aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>{texts.persona}</h2>
      <p class="soft small">{texts.personaHint}</p>
      <form class="stack" onSubmit={create}>
        <PersonaFields />
        <div class="row">
          <button type="submit" class="primary wide">
            {kit.create}
          </button>
        </div>
      </form>
      <Told outcome={outcome} />
    </section>
  );
}
