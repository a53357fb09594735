// What the tests use of Apple's Foundation and XCTest, and Linux does not have.
#if !canImport(ObjectiveC)
    import XCTest

    func autoreleasepool<Result>(invoking body: () throws -> Result) rethrows -> Result { try body() }
    extension XCTestCase {
        convenience init(_ nothing: Void = ()) { self.init(name: "no test") { _ in } }
    }
#endif
