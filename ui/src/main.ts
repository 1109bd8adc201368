import './styles/tokens.css';
import './styles/base.css';
import './styles/text.css';

import { mount } from 'svelte';

import App from './App.svelte';
import { installTheme } from './lib/theme';

installTheme();
const target = document.getElementById('app');
if (target) mount(App, { target });
