import StateHTTP
import StateStore
import Testing

@testable import StateServer

@Suite("What state streams keep")
struct StatePagesTests {
    @Test("messages that were made for an access are for no other one, even after the end of the first")
    func access() {
        let feed = StatePages()
        weak var first: Access?
        do {
            let access = Access()
            first = access
            feed.keep(StatePages.Messages(array: Array("[]".utf8), next: 2), of: page(access))
            #expect(feed.messages(of: page(access))?.next == 2)
        }

        // As long as the messages are kept, no other access can have the identity of theirs.
        #expect(first != nil)
        #expect(feed.messages(of: page(Access())) == nil)
    }

    private func page(_ access: Access) -> StatePages.Page {
        StatePages.Page(
            since: 1, next: 2, filter: ChangesFilter(), store: "", access: access, hasOldValues: false)
    }
}
