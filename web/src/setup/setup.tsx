import { useTexts } from '../app.ts';

export default function Setup() {
  return <h1>{useTexts().frame.setup}</h1>;
}
