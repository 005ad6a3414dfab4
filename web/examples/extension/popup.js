// SPDX-License-Identifier: Apache-2.0
// popup.js - the engine in a page of an extension, whose policy has to allow WebAssembly.
import { Engine } from './tinygpt/bundle/tinygpt.js';

const engine = await Engine.open();
document.getElementById('state').textContent =
  `Ready: ${engine.info.build}, threads: ${engine.info.threads}`;
