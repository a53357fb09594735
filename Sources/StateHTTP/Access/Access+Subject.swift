extension Access {
    /// The fault in the name of a subject, or nil.
    package static func fault(inSubject subject: String) -> String? {
        (1...255).contains(subject.utf8.count)
            && subject.unicodeScalars.allSatisfy { scalar in
                switch scalar.properties.generalCategory {
                case .control, .spaceSeparator, .lineSeparator, .paragraphSeparator: false
                default: true
                }
            }
            ? nil : "a subject has 1 to 255 bytes, without spaces and control characters"
    }
}
