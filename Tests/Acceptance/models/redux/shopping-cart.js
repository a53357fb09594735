import { combineReducers, createAction } from '@reduxjs/toolkit'

const receiveProducts = createAction('RECEIVE_PRODUCTS')
const addToCart = createAction('ADD_TO_CART')
const checkoutRequest = createAction('CHECKOUT_REQUEST')
const checkoutFailure = createAction('CHECKOUT_FAILURE')

const product = (state, action) => {
  switch (action.type) {
    case 'ADD_TO_CART':
      return { ...state, inventory: state.inventory - 1 }
    default:
      return state
  }
}

const byId = (state = {}, action) => {
  switch (action.type) {
    case 'RECEIVE_PRODUCTS':
      return {
        ...state,
        ...action.payload.reduce((table, each) => {
          table[each.id] = each
          return table
        }, {}),
      }
    default: {
      const id = action.payload?.productId
      return id !== undefined && state[id] ? { ...state, [id]: product(state[id], action) } : state
    }
  }
}

const visibleIds = (state = [], action) => (action.type === 'RECEIVE_PRODUCTS' ? action.payload.map((each) => each.id) : state)

const initialCart = { addedIds: [], quantityById: {} }

const addedIds = (state = initialCart.addedIds, action) => {
  if (action.type !== 'ADD_TO_CART' || state.indexOf(action.payload.productId) !== -1) return state
  return [...state, action.payload.productId]
}

const quantityById = (state = initialCart.quantityById, action) => {
  if (action.type !== 'ADD_TO_CART') return state
  const { productId } = action.payload
  return { ...state, [productId]: (state[productId] || 0) + 1 }
}

const cart = (state = initialCart, action) => {
  switch (action.type) {
    case 'CHECKOUT_REQUEST':
      return initialCart
    case 'CHECKOUT_FAILURE':
      return action.payload.cart
    default:
      return { addedIds: addedIds(state.addedIds, action), quantityById: quantityById(state.quantityById, action) }
  }
}

export default combineReducers({ cart, products: combineReducers({ byId, visibleIds }) })
