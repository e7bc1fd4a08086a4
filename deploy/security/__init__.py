"""What a secured platform is made of: certificates, users, access rules, and the files by which clients log in."""
