package import StateStore

/// Blocks with objects on them, normalised: a change of one object costs O(log n) in the number of objects.
///
/// An object names its block. The objects of a block form a chain, from the newest to the oldest. Adding or
/// removing an object is O(log n), and removing a block with k objects is O(k log n).
package struct Canvas: Domain {
    package struct State: StateType {
        var blocks = EntityTable<Int, Block>()
        var objects = EntityTable<Int, Object>()
        var neighbours = EntityTable<Int, Neighbours>()
        package init() {}
    }

    struct Frame: Codable, Equatable {
        var x: Double
        var y: Double
        var width: Double
        var height: Double
    }

    struct Block: Codable, Equatable {
        var frame: Frame
        var newest: Int?
    }

    struct Object: Codable, Equatable {
        var frame: Frame
        var block: Int
        var label: String?
    }

    struct Neighbours: Codable, Equatable {
        var older: Int?
        var newer: Int?
    }

    struct AddBlock: ValidatedAction {
        static let type = "canvas/addBlock"
        var id: Int
        var frame: Frame

        func validate() throws(Rejection) { try frame.check("/frame") }
    }

    struct MoveBlock: ValidatedAction {
        static let type = "canvas/moveBlock"
        var id: Int
        var x: Double
        var y: Double

        func validate() throws(Rejection) { try Canvas.check(x, y) }
    }

    struct ResizeBlock: ValidatedAction {
        static let type = "canvas/resizeBlock"
        var id: Int
        var width: Double
        var height: Double

        func validate() throws(Rejection) { try Frame(x: 0, y: 0, width: width, height: height).check("") }
    }

    struct RemoveBlock: Action {
        static let type = "canvas/removeBlock"
        var id: Int
    }

    struct AddObject: ValidatedAction {
        static let type = "canvas/addObject"
        var id: Int
        var block: Int
        var frame: Frame
        var label: String?

        func validate() throws(Rejection) {
            try frame.check("/frame")
            try Canvas.check(label)
        }
    }

    /// Gives an object another frame, another label, or both; an empty label removes it.
    struct UpdateObject: ValidatedAction {
        static let type = "canvas/updateObject"
        var id: Int
        var frame: Frame?
        var label: String?

        func validate() throws(Rejection) {
            try frame?.check("/frame")
            try Canvas.check(label)
        }
    }

    struct MoveObject: ValidatedAction {
        static let type = "canvas/moveObject"
        var id: Int
        var x: Double
        var y: Double

        func validate() throws(Rejection) { try Canvas.check(x, y) }
    }

    struct RemoveObject: Action {
        static let type = "canvas/removeObject"
        var id: Int
    }

    struct Summary: Codable, Equatable {
        var blocks: Int
        var objects: Int
    }

    package init() {}

    package var reducer: some Reducer<State> {
        Entities("blocks", ids: "blockIDs", \.blocks)
        Entities("objects", ids: "objectIDs", \.objects)
        Entities("neighbours", ids: "neighbourIDs", \.neighbours)
        blockHandlers
        objectHandlers
        View("summary", reads: ["/blockIDs", "/objectIDs"]) { state in
            Summary(blocks: state.blocks.count, objects: state.objects.count)
        }
    }

    @ReducerBuilder<State> private var blockHandlers: ReducerList<State> {
        On(AddBlock.self) { state, action throws(Rejection) in
            guard !state.blocks.contains(action.id) else {
                throw Rejection("canvas.duplicate-block", "block \(action.id) exists already", pointer: "/id")
            }
            guard state.blocks.count < blocksMax else {
                throw Rejection("canvas.full", "a canvas has at most \(blocksMax) blocks")
            }
            state.blocks[action.id] = Block(frame: action.frame)
        }
        On(MoveBlock.self) { state, action throws(Rejection) in
            try state.changeBlock(action.id) { ($0.frame.x, $0.frame.y) = (action.x, action.y) }
        }
        On(ResizeBlock.self) { state, action throws(Rejection) in
            try state.changeBlock(action.id) { ($0.frame.width, $0.frame.height) = (action.width, action.height) }
        }
        On(RemoveBlock.self) { state, action throws(Rejection) in
            var next = try state.block(action.id).newest
            while let id = next {
                next = state.neighbours[id]?.older
                state.neighbours[id] = nil
                state.objects[id] = nil
            }
            state.blocks[action.id] = nil
        }
    }

    @ReducerBuilder<State> private var objectHandlers: ReducerList<State> {
        On(AddObject.self) { state, action throws(Rejection) in
            guard !state.objects.contains(action.id) else {
                throw Rejection("canvas.duplicate-object", "object \(action.id) exists already", pointer: "/id")
            }
            guard state.objects.count < objectsMax else {
                throw Rejection("canvas.full", "a canvas has at most \(objectsMax) objects")
            }
            try state.link(action.id, into: action.block)
            state.objects[action.id] = Object(
                frame: action.frame, block: action.block, label: Canvas.label(action.label))
        }
        On(UpdateObject.self) { state, action throws(Rejection) in
            try state.changeObject(action.id) { object in
                if let frame = action.frame { object.frame = frame }
                if let label = action.label { object.label = Canvas.label(label) }
            }
        }
        On(MoveObject.self) { state, action throws(Rejection) in
            try state.changeObject(action.id) { ($0.frame.x, $0.frame.y) = (action.x, action.y) }
        }
        On(RemoveObject.self) { state, action throws(Rejection) in
            let object = try state.object(action.id)
            state.unlink(action.id, from: object.block)
            state.objects[action.id] = nil
        }
    }

    private static func label(_ text: String?) -> String? { text == "" ? nil : text }

    private static func check(_ x: Double, _ y: Double) throws(Rejection) {
        try Frame(x: x, y: y, width: 0, height: 0).check("")
    }

    private static func check(_ label: String?) throws(Rejection) {
        guard label?.utf8.count ?? 0 <= labelBytesMax else {
            throw Rejection(
                "canvas.label", "a label has at most \(labelBytesMax) bytes", kind: .invalid, pointer: "/label")
        }
    }
}

private let blocksMax = 100_000
private let objectsMax = 1_000_000
private let labelBytesMax = 1000

extension Canvas.Frame {
    fileprivate func check(_ pointer: String) throws(Rejection) {
        for (name, number) in [("x", x), ("y", y), ("width", width), ("height", height)] where !number.isFinite {
            throw Rejection("canvas.frame", "\(name) is not finite", kind: .invalid, pointer: "\(pointer)/\(name)")
        }
        for (name, number) in [("width", width), ("height", height)] where number < 0 {
            throw Rejection("canvas.frame", "\(name) is negative", kind: .invalid, pointer: "\(pointer)/\(name)")
        }
    }
}

extension Canvas.State {
    fileprivate func block(_ id: Int, _ pointer: String = "/id") throws(Rejection) -> Canvas.Block {
        guard let block = blocks[id] else {
            throw Rejection("canvas.unknown-block", "there is no block \(id)", pointer: pointer)
        }
        return block
    }

    fileprivate func object(_ id: Int) throws(Rejection) -> Canvas.Object {
        guard let object = objects[id] else {
            throw Rejection("canvas.unknown-object", "there is no object \(id)", pointer: "/id")
        }
        return object
    }

    fileprivate mutating func changeBlock(
        _ id: Int, _ change: (inout Canvas.Block) -> Void
    ) throws(Rejection) {
        _ = try block(id)
        blocks.update(id, change)
    }

    fileprivate mutating func changeObject(
        _ id: Int, _ change: (inout Canvas.Object) -> Void
    ) throws(Rejection) {
        _ = try object(id)
        objects.update(id, change)
    }

    fileprivate mutating func link(_ id: Int, into blockID: Int) throws(Rejection) {
        let older = try block(blockID, "/block").newest
        neighbours[id] = .init(older: older)
        if let older { neighbours.update(older) { $0.newer = id } }
        blocks.update(blockID) { $0.newest = id }
    }

    fileprivate mutating func unlink(_ id: Int, from blockID: Int) {
        guard let gap = neighbours[id] else { return }
        neighbours[id] = nil
        if let older = gap.older { neighbours.update(older) { $0.newer = gap.newer } }
        if let newer = gap.newer {
            neighbours.update(newer) { $0.older = gap.older }
        } else {
            blocks.update(blockID) { $0.newest = gap.older }
        }
    }
}
