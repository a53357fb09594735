import { configureStore, createAction } from '@reduxjs/toolkit'

const increment = createAction('INCREMENT')
const createNode = createAction('CREATE_NODE')
const deleteNode = createAction('DELETE_NODE')
const addChild = createAction('ADD_CHILD')
const removeChild = createAction('REMOVE_CHILD')

const childIds = (state, action) => {
  switch (action.type) {
    case 'ADD_CHILD':
      return [...state, action.payload.childId]
    case 'REMOVE_CHILD':
      return state.filter((id) => id !== action.payload.childId)
    default:
      return state
  }
}

const node = (state, action) => {
  switch (action.type) {
    case 'CREATE_NODE':
      return { id: action.payload.nodeId, counter: 0, childIds: [] }
    case 'INCREMENT':
      return { ...state, counter: state.counter + 1 }
    case 'ADD_CHILD':
    case 'REMOVE_CHILD':
      return { ...state, childIds: childIds(state.childIds, action) }
    default:
      return state
  }
}

const allDescendants = (state, id) =>
  state[id].childIds.reduce((found, childId) => (state[childId] ? [...found, childId, ...allDescendants(state, childId)] : found), [])

const deleteMany = (state, ids) => {
  const rest = { ...state }
  ids.forEach((id) => delete rest[id])
  return rest
}

const tree = (state = { 0: { id: 0, counter: 0, childIds: [] } }, action) => {
  const nodeId = action.payload?.nodeId
  if (nodeId === undefined) return state
  if (action.type !== 'CREATE_NODE' && !state[nodeId]) return state
  if (action.type === 'DELETE_NODE') return deleteMany(state, [nodeId, ...allDescendants(state, nodeId)])
  return { ...state, [nodeId]: node(state[nodeId], action) }
}

export const store = configureStore({ reducer: tree })
