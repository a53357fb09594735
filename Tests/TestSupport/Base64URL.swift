import Foundation

/// A text in base64url without padding (RFC 7515), as in the parts of a JSON Web Token.
package func base64URL(_ text: String) -> String {
    Data(text.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").filter { $0 != "=" }
}
