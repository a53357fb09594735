/// The verification of signatures; a value, because a build without the trait JWT has none.
package struct SignatureVerifier: Sendable {
    /// The fault of a key, in words without the key, or nil.
    package var fault: @Sendable (VerificationKey) -> String?
    /// The claims of a token, or nil if this key has not signed it, or a needed claim is missing.
    package var claims: @Sendable (SignedToken, VerificationKey) async -> Claims?

    package init(
        fault: @escaping @Sendable (VerificationKey) -> String?,
        claims: @escaping @Sendable (SignedToken, VerificationKey) async -> Claims?
    ) {
        (self.fault, self.claims) = (fault, claims)
    }
}
