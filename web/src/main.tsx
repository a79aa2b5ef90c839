/** The page begins here. */
import { render } from 'preact';
import { TextsContext } from './app.ts';
import { Frame } from './frame.tsx';
import './style/base.css';
import { textsFor } from './texts/texts.ts';

const { language, texts } = textsFor(navigator.languages);
document.documentElement.lang = language;
const page = document.getElementById('page');
if (page !== null) {
  render(
    <TextsContext.Provider value={texts}>
      <Frame />
    </TextsContext.Provider>,
    page,
  );
}
