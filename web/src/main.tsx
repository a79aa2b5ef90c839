/** The page begins here. */
import { render } from 'preact';
import { TextsContext } from './app.ts';
import { Frame } from './frame.tsx';
import './style/base.css';
import './style/frame.css';
import './style/kit.css';
import { textsFor } from './texts/texts.ts';

const { language, texts } = textsFor(navigator.languages);
document.documentElement.lang = language;
addEventListener('keydown', slash);
const page = document.getElementById('page');
if (page !== null) {
  render(
    <TextsContext.Provider value={texts}>
      <Frame />
    </TextsContext.Provider>,
    page,
  );
}

/** `/` outside of a field leads to the search of a place, or to its message. */
function slash(event: KeyboardEvent): void {
  const { key, target, altKey, ctrlKey, metaKey } = event;
  if (key !== '/' || altKey || ctrlKey || metaKey || event.defaultPrevented) return;
  if (target instanceof Element && target.closest('input, textarea, select, [contenteditable], dialog'))
    return;
  const field = document.querySelector<HTMLElement>('main [data-slash]');
  if (field === null) return;
  event.preventDefault();
  field.focus();
}
