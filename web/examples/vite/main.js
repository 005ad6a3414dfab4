// SPDX-License-Identifier: Apache-2.0
// main.js - the package, with its modules where vite.config.js has put them.
import { Engine } from 'tinygpt';

const engine = await Engine.open({ wasmBase: new URL('./wasm/', document.baseURI) });
const tiny = engine.info.presets.find(({ name }) => name === 'tiny');
const model = await engine.newModel(tiny.config);
const { params } = await model.info();
document.getElementById('state').textContent = `Ready: ${params} parameters`;
