import { useTexts } from '../app.ts';

export default function Chat() {
  return <h1>{useTexts().frame.chat}</h1>;
}
