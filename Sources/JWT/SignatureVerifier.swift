/// The verification of signatures; a value, because a build without the trait JWT has none.
package struct SignatureVerifier: Sendable {
    /// What is wrong with a key, in words without the key; nil for a good one.
    package var fault: @Sendable (VerificationKey) -> String?
    /// The claims of a token; nil where this key has not signed it, or it has not the claims that the server needs.
    package var claims: @Sendable (SignedToken, VerificationKey) async -> Claims?

    package init(
        fault: @escaping @Sendable (VerificationKey) -> String?,
        claims: @escaping @Sendable (SignedToken, VerificationKey) async -> Claims?
    ) {
        (self.fault, self.claims) = (fault, claims)
    }
}
