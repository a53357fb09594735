package import HTTPMessages
internal import HTTPTypes
package import StateStore

extension Contract {
    /// The head of a backup, whose body comes in chunks.
    ///
    /// - Parameter cursor: that of the last commit in the backup.
    package func response(toBackupAt cursor: Cursor) -> Response {
        Response(
            status: .ok,
            fields: [
                .contentType: "application/x-tar", .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
                .crossOriginResourcePolicy: "same-origin", .accelBuffering: "no", .stateCursor: cursor.description,
            ])
    }
}
