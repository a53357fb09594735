import Glibc

package struct ServerError: Error, Equatable, CustomStringConvertible {
    package let isOfAddress: Bool
    /// A sentence for the operator.
    package let description: String

    static func hostUnknown(host: String, reason: String) -> ServerError {
        let expected = "expected an address of this machine, such as 127.0.0.1, 0.0.0.0 or ::"
        return ServerError(isOfAddress: true, description: "cannot listen on \(host): \(reason); \(expected)")
    }

    static func unavailable(reason: String) -> ServerError {
        ServerError(isOfAddress: false, description: "the server could not be set up: \(reason)")
    }

    static func words(for code: Int32) -> String {
        String(cString: strerror(code))
    }
}
