/// The known encodings of parts of a value, by the tokens of their pointers.
///
/// A lookup is O(n) in the number of parts; a state has few parts that are encoded as one value.
package struct KnownTexts: Sendable {
    private var parts: [(path: [String], text: KnownText)] = []

    /// Makes an empty collection.
    package init() {}

    subscript(path: [String]) -> KnownText? {
        get { parts.first { $0.path == path }?.text }
        set {
            let index = parts.firstIndex { $0.path == path }
            switch (index, newValue) {
            case (let index?, let text?): parts[index].text = text
            case (nil, let text?): parts.append((path, text))
            case (let index?, nil): parts.remove(at: index)
            case (nil, nil): break
            }
        }
    }
}
