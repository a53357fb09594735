extension JSONDocument {
    /// Throws for nesting above the limit, and for an object with a key twice.
    func check(depthMax: Int) throws(JSONFault) {
        var fault: (JSONFault.Kind, Int)?
        if isContainer(root) { check(root, depth: 1, depthMax: depthMax, &fault) }
        switch fault {
        case (.tooDeep, let index)?:
            throw JSONFault(.tooDeep, at: pointer(to: index), "nested deeper than \(depthMax) levels")
        case (let kind, let index)?:
            throw JSONFault(kind, at: pointer(to: index), "the key occurs twice in its object")
        case nil: break
        }
    }

    private func isContainer(_ index: Int) -> Bool {
        kind(index) == UInt8(ascii: "{") || kind(index) == UInt8(ascii: "[")
    }

    private func check(_ container: Int, depth: Int, depthMax: Int, _ fault: inout (JSONFault.Kind, Int)?) {
        let isObject = kind(container) == UInt8(ascii: "{")
        guard depth <= depthMax else {
            fault = (.tooDeep, container)
            return
        }
        var child = firstChild(container)
        var count = 0
        while !isEnd(child), fault == nil {
            count += 1
            let value = isObject ? child + 1 : child
            if isContainer(value) { check(value, depth: depth + 1, depthMax: depthMax, &fault) }
            child = after(value)
        }
        if isObject, count > 1, fault == nil, let twice = duplicateKey(container, count: count) {
            fault = (.duplicateKey, twice)
        }
    }

    /// The index of the second of two equal keys, or nil.
    private func duplicateKey(_ object: Int, count: Int) -> Int? {
        if count > 12 {
            var seen = Set<[UInt8]>(minimumCapacity: count)
            var key = firstChild(object)
            while !isEnd(key) {
                guard seen.insert(Array(utf8(key))).inserted else { return key }
                key = after(key + 1)
            }
            return nil
        }
        var key = firstChild(object)
        while !isEnd(key) {
            let name = utf8(key)
            var other = after(key + 1)
            while !isEnd(other) {
                let otherName = utf8(other)
                if name.count == otherName.count, name.elementsEqual(otherName) { return other }
                other = after(other + 1)
            }
            key = after(key + 1)
        }
        return nil
    }
}
