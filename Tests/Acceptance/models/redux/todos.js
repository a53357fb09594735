import { combineReducers } from 'redux'
import { createAction } from '@reduxjs/toolkit'

export const addTodo = createAction('ADD_TODO')
export const toggleTodo = createAction('TOGGLE_TODO')
export const setVisibilityFilter = createAction('SET_VISIBILITY_FILTER')

const todo = (state, action) => {
  switch (action.type) {
    case 'ADD_TODO':
      return { id: action.payload.id, text: action.payload.text, completed: false }
    case 'TOGGLE_TODO':
      if (state.id !== action.payload.id) return state
      return { ...state, completed: !state.completed }
    default:
      return state
  }
}

const todos = (state = [], action) => {
  switch (action.type) {
    case 'ADD_TODO':
      return [...state, todo(undefined, action)]
    case 'TOGGLE_TODO':
      return state.map((each) => todo(each, action))
    default:
      return state
  }
}

const visibilityFilter = (state = 'SHOW_ALL', action) => {
  switch (action.type) {
    case 'SET_VISIBILITY_FILTER':
      return action.payload
    default:
      return state
  }
}

export default combineReducers({ todos, visibilityFilter })
